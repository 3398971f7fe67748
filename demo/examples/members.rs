//! Runs the sample members alone, without a gateway, and prints the kubeconfig that reaches them directly.
//!
//! For comparing what kubectl shows directly with what it shows through a gateway.
#![allow(clippy::print_stdout)] // printing is what this program is for

use anyhow::Result;
use demo::{
    kubeconfig::Kubeconfig,
    member::{BERLIN, Member, OSAKA, Pace},
};
use secrecy::SecretString;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("kubeconfig");
    let mut kubeconfig = Kubeconfig::default();
    let mut members = Vec::new();
    for profile in [&BERLIN, &OSAKA] {
        let member = Member::start(profile, SecretString::from("sample"), Pace::Seconds).await?;
        let server = format!("https://{}", member.address());
        kubeconfig =
            kubeconfig.user(profile.name, member.token()).context(profile.name, &server, member.ca_pem(), profile.name);
        members.push(member);
    }
    kubeconfig.write(&path)?;
    println!("kubectl --kubeconfig {} --context {} get pods -A", path.display(), BERLIN.name);
    tokio::signal::ctrl_c().await?;
    for member in members {
        member.stop().await;
    }
    Ok(())
}
