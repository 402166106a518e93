//! Programs as child processes: the laws of the port, with shell scripts in place of tofu, and what only processes can
//! show.

mod environment;
mod fixture;
mod hostile;
mod lost;
mod queries;
mod real;
mod streams;
mod tools;
mod workspaces;

use fixture::Stage;

rezus_testkit::executor_contract!(Stage::new());
