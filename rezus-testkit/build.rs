//! Makes the server of the fake Talos API from the same files as the adapter's client.

fn main() {
    const PROTO: &str = "../rezus-adapters/proto";
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={PROTO}");
    let files = ["machine.proto", "time.proto", "cosi.proto", "specs.proto"];
    let set = protox::compile(files, [PROTO]).expect("the files of the adapter are right");
    let builder = tonic_prost_build::configure().build_client(false).build_transport(false);
    builder.compile_fds(set).expect("the folder of the build can be written to");
}
