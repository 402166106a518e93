//! States that differ in what a benchmark needs.

use crate::Outcome;

/// Returns the state with another serial, and all else as it was.
///
/// # Errors
///
/// When it has none.
pub fn numbered(state: &[u8], serial: u64) -> Outcome<Vec<u8>> {
    const NAME: &[u8] = b"\"serial\": ";
    let start =
        state.windows(NAME.len()).position(|window| window == NAME).ok_or("the state has no serial")?;
    let start = start + NAME.len();
    let digits = state[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = serial.to_string();
    let mut numbered = Vec::with_capacity(state.len() - digits + number.len());
    numbered.extend_from_slice(&state[..start]);
    numbered.extend_from_slice(number.as_bytes());
    numbered.extend_from_slice(&state[start + digits..]);
    Ok(numbered)
}

/// Returns `wanted` numbers below `below`, evenly spread and of every last digit, so that each kind of generated
/// instance has its share among them.
pub fn every(below: usize, wanted: usize) -> Vec<usize> {
    let mut step = (below / wanted.max(1)).max(1);
    while step > 1 && (step.is_multiple_of(2) || step.is_multiple_of(5)) {
        step -= 1;
    }
    (0..below).step_by(step).take(wanted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_serial_changes() {
        let state = br#"{"version": 4, "serial": 1000, "lineage": "x"}"#;
        assert_eq!(numbered(state, 7).unwrap(), br#"{"version": 4, "serial": 7, "lineage": "x"}"#);
        assert!(numbered(b"{}", 7).is_err());
    }

    #[test]
    fn numbers_are_spread_over_all_last_digits() {
        for below in [200, 500, 20_000] {
            let numbers = every(below, 50);
            assert_eq!(numbers.len(), 50);
            for digit in 0..10 {
                assert_eq!(numbers.iter().filter(|number| *number % 10 == digit).count(), 5, "{below}");
            }
        }
    }
}
