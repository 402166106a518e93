//! Real OpenTofu and Terraform against the real server.

pub(crate) mod example;
mod faults;
mod life;
mod locks;

use crate::{tool, tools};

/// What was not tried is said past the capture of tests' output, so that nobody takes silence for success.
#[test]
fn clients_that_are_not_installed_are_named() {
    let missing = tool::missing();
    for name in &missing {
        tools::say(&format!("NOT TRIED: {name}"));
    }
    let must_be_there = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(
        !(must_be_there && tool::installed().is_empty()),
        "neither of {missing:?} is on the path: CI must try one"
    );
}
