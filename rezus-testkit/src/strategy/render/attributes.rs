//! Makes the attributes of one object, with the paths that mark them and the copies that nothing marks.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

use crate::strategy::json::{Json, member, number, raw, text};
use crate::strategy::noise::Noise;
use crate::strategy::plan::{AttributePlan, CopyPlan, MarkPlan, SecretPlan};

/// Returns a text that occurs nowhere but where it is put; `count` makes it so.
pub(super) fn secret_text(plan: SecretPlan, count: usize) -> String {
    let mut noise = Noise::new(plan.nonce);
    let unique = format!("{:016x}{count:04}", noise.next());
    match plan.shape {
        0 => format!("pw-{unique}"),
        1 => format!("p\"w\\{unique}\n<&>"),
        2 => format!("\u{43f}\u{430}\u{440}-{unique}-\u{6f22}\u{1f600}\u{2028}"),
        3 => {
            format!("-----BEGIN FAKE KEY-----\n{}\n{unique}\n-----END FAKE KEY-----\n", "Q0FOQVJZ".repeat(30))
        }
        4 => STANDARD.encode(format!("encoded-{unique}")),
        _ => unique,
    }
}

/// Returns what a secret that is Base64 says: as secret as the secret itself.
pub(super) fn decoded(secret: &str) -> Option<String> {
    let bytes = STANDARD.decode(secret).ok()?;
    String::from_utf8(bytes).ok().filter(|text| text.starts_with("encoded-"))
}

/// Attributes in the making.
pub(super) struct Attributes<'a> {
    /// Counts what must be told apart, over all objects.
    pub(super) count: usize,
    /// All secrets that copies are made of.
    known: &'a [String],
    /// Secrets of this object that copies are made of.
    pub(super) copied: Vec<String>,
    /// Secrets of this object that stand in one place only.
    pub(super) in_place: Vec<String>,
    /// Texts that must be shown.
    pub(super) shown: Vec<String>,
    /// The steps of each path that marks something.
    pub(super) marks: Vec<Vec<Json>>,
    /// Whether a path leads nowhere.
    pub(super) hidden: bool,
}

impl<'a> Attributes<'a> {
    pub(super) fn new(count: usize, known: &'a [String]) -> Self {
        Self {
            count,
            known,
            copied: Vec::new(),
            in_place: Vec::new(),
            shown: Vec::new(),
            marks: Vec::new(),
            hidden: false,
        }
    }

    fn next(&mut self) -> usize {
        self.count += 1;
        self.count
    }

    /// Returns the value of `attributes`.
    pub(super) fn object(&mut self, plans: &[AttributePlan]) -> Json {
        let named = (0..).zip(plans).map(|(at, plan)| (format!("a{at:02}"), plan));
        Json::Object(
            named.filter_map(|(name, plan)| Some((name.clone(), self.value(&name, plan)?))).collect(),
        )
    }

    /// Returns the value of `attributes_flat`: texts only, nothing marked.
    pub(super) fn flat(&mut self, plans: &[AttributePlan]) -> Json {
        let mut members = vec![member("tags.%", text("1")), member("tags.a.b", text("c"))];
        for (at, plan) in (0..).zip(plans) {
            let value = match plan {
                AttributePlan::Plain(Json::Text(plain)) => text(plain),
                AttributePlan::Visible => self.visible(),
                AttributePlan::Copy(of, copy) => self.copy(*of, *copy),
                AttributePlan::Plain(_) | AttributePlan::Marked(..) => continue,
            };
            members.push((format!("list.{at}"), value));
        }
        Json::Object(members)
    }

    /// Returns an attribute's value; none where the attribute is absent.
    fn value(&mut self, name: &str, plan: &AttributePlan) -> Option<Json> {
        Some(match plan {
            AttributePlan::Plain(value) => value.clone(),
            AttributePlan::Visible => self.visible(),
            AttributePlan::Copy(of, copy) => self.copy(*of, *copy),
            AttributePlan::Marked(mark, secret) => return self.marked(name, mark, *secret),
        })
    }

    /// The word of a wrapper's type is in it: it must not be taken for a secret because a wrapper is marked.
    fn visible(&mut self) -> Json {
        let shown = format!("Sichtbar string {:04}", self.next());
        self.shown.push(shown.clone());
        Json::Text(shown)
    }

    fn copy(&self, of: proptest::sample::Index, copy: CopyPlan) -> Json {
        if self.known.is_empty() {
            return text("nothing to copy");
        }
        let secret = of.get(self.known);
        Json::Text(match copy {
            CopyPlan::Whole => secret.clone(),
            CopyPlan::Inside => format!("user:{secret}@192.0.2.1"),
            CopyPlan::Base64 => STANDARD.encode(secret),
            CopyPlan::Header => {
                format!("Authorization: Basic {}, x", URL_SAFE_NO_PAD.encode(format!("u:{secret}")))
            }
            CopyPlan::InsideBase64(before) => {
                STANDARD.encode(format!("{}{secret}\n", &"conf: "[..before.min(6)]))
            }
        })
    }

    fn secret(&mut self, plan: SecretPlan) -> String {
        let count = self.next();
        let secret = secret_text(plan, count);
        self.copied.push(secret.clone());
        self.copied.extend(decoded(&secret));
        secret
    }

    fn mark(&mut self, steps: Vec<Json>) {
        self.marks.push(steps);
    }

    fn marked(&mut self, name: &str, mark: &MarkPlan, plan: SecretPlan) -> Option<Json> {
        let attribute = attribute_step(name);
        let (value, steps) = match mark {
            MarkPlan::Attribute => (Json::Text(self.secret(plan)), vec![attribute]),
            MarkPlan::Nested => {
                let inner =
                    Json::Object(vec![member("pw", Json::Text(self.secret(plan))), member("n", raw("1"))]);
                let steps = vec![attribute, attribute_step("inner"), attribute_step("pw")];
                (Json::Object(vec![member("inner", inner), member("seen", self.visible())]), steps)
            }
            MarkPlan::Element(before) => {
                let before = usize::from(*before);
                let mut list: Vec<Json> = (0..before).map(|_| self.visible()).collect();
                list.push(Json::Text(self.secret(plan)));
                list.push(self.visible());
                (Json::List(list), vec![attribute, index_step(number(before), raw("\"number\""))])
            }
            MarkPlan::MapElement(key) => {
                let other = format!("{key}x");
                let map = vec![(key.clone(), Json::Text(self.secret(plan))), (other, self.visible())];
                (Json::Object(map), vec![attribute, index_step(text(key), raw("\"string\""))])
            }
            MarkPlan::Subtree => {
                let list = Json::List(vec![Json::Text(self.secret(plan)), raw("1"), raw("null")]);
                let tree = vec![member("a", Json::Text(self.secret(plan))), member("b", list)];
                (Json::Object(tree), vec![attribute])
            }
            MarkPlan::ThroughWrapper => {
                let pair = Json::List(vec![self.visible(), Json::Text(self.secret(plan))]);
                let value = Json::Object(vec![member("list", pair), member("seen", self.visible())]);
                let kind =
                    raw("[\"object\",{\"list\":[\"tuple\",[\"string\",\"string\"]],\"seen\":\"string\"}]");
                let steps = vec![attribute, attribute_step("list"), index_step(raw("1"), raw("\"number\""))];
                (Json::Object(vec![member("value", value), member("type", kind)]), steps)
            }
            MarkPlan::Wrapper => {
                let wrapped =
                    vec![member("value", Json::Text(self.secret(plan))), member("type", text("string"))];
                (Json::Object(wrapped), vec![attribute])
            }
            MarkPlan::SetElement => {
                let element = Json::Object(vec![
                    member("name", text("n")),
                    member("pw", Json::Text(self.secret(plan))),
                ]);
                let other = Json::Object(vec![member("name", text("n")), member("pw", raw("null"))]);
                let kind = raw("[\"object\",{\"name\":\"string\",\"pw\":\"string\"}]");
                (Json::List(vec![other, element.clone()]), vec![attribute, index_step(element, kind)])
            }
            MarkPlan::Number => {
                let digits = format!("7{:014}{:04}", plan.nonce % 100_000_000_000_000, self.next());
                self.in_place.push(digits.clone());
                (raw(&digits), vec![attribute])
            }
            MarkPlan::Short => {
                let count = self.next();
                let digit =
                    |place: usize| char::from_digit(u32::try_from(count / place % 36).unwrap_or(0), 36);
                let short: String = [
                    '\u{a7}',
                    digit(1296).unwrap_or('x'),
                    digit(36).unwrap_or('x'),
                    digit(1).unwrap_or('x'),
                    '\u{b6}',
                ]
                .into_iter()
                .collect();
                self.in_place.push(short.clone());
                (Json::Text(short), vec![attribute])
            }
            MarkPlan::Null => (raw("null"), vec![attribute]),
            MarkPlan::Nothing => {
                self.hidden = true;
                self.mark(vec![attribute, attribute_step("gone")]);
                return None;
            }
        };
        self.mark(steps);
        Some(value)
    }
}

fn attribute_step(name: &str) -> Json {
    Json::Object(vec![member("type", text("get_attr")), member("value", text(name))])
}

fn index_step(value: Json, kind: Json) -> Json {
    let index = Json::Object(vec![member("value", value), member("type", kind)]);
    Json::Object(vec![member("type", text("index")), member("value", index)])
}
