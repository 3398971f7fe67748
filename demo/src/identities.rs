//! Identities of the demo: the gateway's own certificate, one identity that may do everything, one
//! that may do nothing.
//!
//! All are made for one run and are worthless after it. Nothing here prints a key or a token.

use std::{
    fmt::Write as _,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use kit::pki::{Authority, Leaf, PemFiles};
use secrecy::{ExposeSecret as _, SecretString};

use crate::private_file;

/// The group that may do everything (`k8s.io/apiserver/pkg/authentication/user`).
const MASTERS: &str = "system:masters";
/// Beginning of the common name of an agent's certificate; its cluster's name follows.
const AGENT: &str = "system:tunnel-agent:";
/// Random bytes of a token.
const TOKEN_BYTES: usize = 24;

/// Keys, certificates and tokens, with the files that tell the gateway about them.
#[derive(Debug)]
pub struct Identities {
    /// The authority of the gateway's certificate, PEM.
    pub authority_pem: String,
    /// The same as a file.
    pub authority: PathBuf,
    /// The gateway's certificate.
    pub serving: PemFiles,
    /// The authority of client certificates, as a file.
    pub client_authority: PathBuf,
    /// The authority of agents' certificates, as a file.
    pub agents_authority: PathBuf,
    /// The certificate with which the agent of the cluster that was asked for may link it, and no
    /// other.
    pub agent: PemFiles,
    /// The token of an identity that may do everything.
    pub admin: SecretString,
    /// A client certificate of the same identity.
    pub admin_certificate: PemFiles,
    /// A curl configuration that uses it and trusts the gateway.
    pub curl: PathBuf,
    /// The token of an identity without groups or rights.
    pub stranger: SecretString,
    /// Both tokens as lines of `token,user,uid,"groups"`, which is what Kubernetes calls a token
    /// auth file.
    pub tokens: PathBuf,
}

// === impl Identities ===

impl Identities {
    /// Makes everything, with an agent's certificate for `tunnelled`, and writes it into
    /// `directory`.
    pub fn create(directory: &Path, tunnelled: &str) -> io::Result<Self> {
        let (servers, clients) = (Authority::new("demo-gateway-ca"), Authority::new("demo-client-ca"));
        let agents = Authority::new("demo-agents-ca");
        let agent = agents.issue(&Leaf::client(format!("{AGENT}{tunnelled}")));
        let (admin, stranger) = (random_token(), random_token());
        let tokens = directory.join("tokens.csv");
        let mut file = private_file::create(&tokens)?;
        writeln!(file, "{},admin,1,\"{MASTERS}\"", admin.expose_secret())?;
        writeln!(file, "{},stranger,2,", stranger.expose_secret())?;
        let authority = servers.write_to(directory, "gateway-ca")?;
        let certificate = clients.issue(&Leaf::client("admin").group(MASTERS)).write_to(directory, "admin")?;
        let curl = directory.join("curlrc");
        let options = [("cacert", &authority), ("cert", &certificate.certificate), ("key", &certificate.key)];
        std::fs::write(&curl, options.map(|(name, path)| curl_option(name, path)).concat())?;
        Ok(Self {
            authority_pem: servers.root_pem(),
            authority,
            serving: servers.issue(&Leaf::server("cluster-gateway")).write_to(directory, "gateway")?,
            client_authority: clients.write_to(directory, "client-ca")?,
            agents_authority: agents.write_to(directory, "agents-ca")?,
            agent: agent.write_to(directory, "agent")?,
            admin,
            admin_certificate: certificate,
            curl,
            stranger,
            tokens,
        })
    }
}

/// A line of a curl configuration: in quotes, `\` and `"` are escaped (curl(1), `--config`).
fn curl_option(name: &str, path: &Path) -> String {
    let escaped = path.display().to_string().replace('\\', r"\\").replace('"', r#"\""#);
    format!("{name} = \"{escaped}\"\n")
}

/// A token that cannot be guessed, in characters that need no quoting anywhere.
pub fn random_token() -> SecretString {
    let mut bytes = [0; TOKEN_BYTES];
    aws_lc_rs::rand::fill(&mut bytes).expect("the operating system has randomness");
    let text = bytes.iter().fold(String::with_capacity(2 * TOKEN_BYTES), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes any text");
        text
    });
    SecretString::from(text)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    #[test]
    fn curl_reads_any_path() {
        assert_eq!(curl_option("cert", Path::new(r#"/a "b"\c"#)), "cert = \"/a \\\"b\\\"\\\\c\"\n");
    }

    #[test]
    fn tokens_differ_and_stay_out_of_sight() {
        let directory = tempfile::tempdir().unwrap();
        let identities = Identities::create(directory.path(), "osaka").unwrap();
        let (admin, stranger) = (identities.admin.expose_secret(), identities.stranger.expose_secret());
        assert_ne!(admin, stranger);
        let printed = format!("{identities:?}");
        assert!(!printed.contains(admin) && !printed.contains(stranger));
        for secret in
            [&identities.tokens, &identities.serving.key, &identities.admin_certificate.key, &identities.agent.key]
        {
            assert_eq!(fs::metadata(secret).unwrap().permissions().mode() & 0o777, 0o600, "{}", secret.display());
        }
    }
}
