//! Makes the Talos API's client from the files under `proto`, where the feature asks for it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "talos")]
    {
        println!("cargo::rerun-if-changed=proto");
        let files = ["machine.proto", "time.proto", "cosi.proto", "specs.proto"];
        let set = protox::compile(files, ["proto"]).expect("the files under proto are right");
        let builder = tonic_prost_build::configure().build_server(false).build_transport(false);
        builder.compile_fds(set).expect("the folder of the build can be written to");
    }
}
