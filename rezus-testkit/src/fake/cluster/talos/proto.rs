//! The Talos API's messages and servers, made by the build from the adapter's own files.

#![expect(
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    clippy::as_conversions,
    clippy::clone_on_ref_ptr,
    clippy::pedantic,
    unreachable_pub,
    reason = "nobody writes this code by hand"
)]

pub(super) mod machine {
    tonic::include_proto!("machine");
}
pub(super) mod time {
    tonic::include_proto!("time");
}
pub(super) mod cosi {
    tonic::include_proto!("cosi.resource");
}
pub(super) mod specs {
    tonic::include_proto!("specs");
}
