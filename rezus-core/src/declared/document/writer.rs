//! The version of the tool that wrote a state.

/// Tells whether a text is a version in the sense of `hashicorp/go-version`, by which the tools read it.
pub(super) fn is_version(text: &str) -> bool {
    let text = text.strip_prefix('v').unwrap_or(text);
    let (rest, metadata) = match text.split_once('+') {
        Some((rest, metadata)) => (rest, Some(metadata)),
        None => (text, None),
    };
    let numbers_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let (numbers, prerelease) = rest.split_at(numbers_end);
    let is_number = |part: &str| !part.is_empty() && part.parse::<i64>().is_ok();
    let is_word = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '~'))
    };
    numbers.split('.').all(is_number)
        && (prerelease.is_empty() || prerelease.split('.').all(is_word))
        && metadata.is_none_or(|metadata| metadata.split('.').all(is_word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_what_the_tools_take_for_one() {
        for good in [
            "1.12.6",
            "1.6.0-dev",
            "v1.2",
            "1.2.3+meta",
            "0.12.0-rc1.2+a.b",
            "1",
            "1.2.3.4",
            "1.0beta",
            "1.2-",
            "1.2--x",
        ] {
            assert!(is_version(good), "{good}");
        }
        for bad in [
            "banana",
            "",
            "v",
            ".1",
            "1.",
            "1..2",
            "1.2.3 ",
            "1+",
            "1.2.-x",
            "1.2-a..b",
            "99999999999999999999",
            "1_2",
            "+1",
        ] {
            assert!(!is_version(bad), "{bad}");
        }
    }
}
