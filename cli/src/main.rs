use std::process::ExitCode;

fn main() -> ExitCode {
    kubectl_clusters::run()
}
