//! What can be registered of a member from a kubeconfig: its trust, and the person's own
//! credential.

use std::path::Path;

use api::secret::{Credential, Trust};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::config::{AuthInfo, Cluster, Kubeconfig};
use secrecy::ExposeSecret;

use crate::contexts;
use crate::trouble::{Result, Trouble};

/// What the gateway verifies the member's certificate against. A kubeconfig that skips verification
/// is refused, unless the person also asks for it with `insecure`: it would apply to the gateway,
/// and to everybody that uses it.
pub fn trust(cluster: &Cluster, insecure: bool) -> Result<Trust> {
    if insecure {
        return Ok(Trust::Insecure);
    }
    if cluster.insecure_skip_tls_verify == Some(true) {
        return Err(Trouble::usage(
            "your kubeconfig skips verification of the member's certificate, and the gateway needs its CA",
            "give the context the member's CA (certificate-authority), or add --insecure-skip-tls-verify: anyone \
             between the gateway and the member can then get its token",
        ));
    }
    let bundle = given(
        cluster.certificate_authority_data.as_deref(),
        cluster.certificate_authority.as_deref(),
        "certificate-authority",
    )?;
    Ok(bundle.map_or(Trust::SystemRoots, Trust::Bundle))
}

/// The credential of the context's user, if it can be stored.
pub fn own_credential(kubeconfig: &Kubeconfig, context: &str) -> Result<Credential> {
    let context = contexts::named(kubeconfig, Some(context))?;
    let (_, inner) = contexts::parts(kubeconfig, context)?;
    let user = kubeconfig.auth_infos.iter().find(|user| Some(&user.name) == inner.user.as_ref());
    let Some(user) = user.and_then(|user| user.auth_info.as_ref()) else {
        return Err(unstorable("has no user"));
    };
    credential(user)
}

fn credential(user: &AuthInfo) -> Result<Credential> {
    if let Some(token) = &user.token {
        return Ok(Credential::Token(token.clone()));
    }
    if let Some(file) = &user.token_file {
        let token =
            String::from_utf8(read(file, "tokenFile")?).map_err(|_| unstorable("has a tokenFile that is not text"))?;
        return Ok(Credential::Token(token.trim().to_owned().into()));
    }
    let key = user.client_key_data.as_ref().map(ExposeSecret::expose_secret);
    let certificate =
        given(user.client_certificate_data.as_deref(), user.client_certificate.as_deref(), "client-certificate")?;
    let key = given(key, user.client_key.as_deref(), "client-key")?;
    match (certificate, key) {
        (Some(certificate), Some(key)) => Ok(Credential::X509 { certificate, private_key: key.into() }),
        _ if user.exec.is_some() => Err(unstorable("gets its credential from a program on this machine")),
        _ => Err(unstorable("has no token and no client certificate")),
    }
}

fn unstorable(what: &str) -> Trouble {
    Trouble::usage(
        format!("your own credential for the member cannot be registered: the context {what}"),
        "omit --use-own-credential: join then creates a ServiceAccount on the member",
    )
}

/// A value of a kubeconfig, which holds it in base64 or names its file.
fn given(data: Option<&str>, file: Option<&str>, key: &str) -> Result<Option<Vec<u8>>> {
    match (data, file) {
        (Some(data), _) => STANDARD.decode(data).map(Some).map_err(|_| {
            Trouble::usage(format!("{key}-data in the kubeconfig is not base64"), "correct the kubeconfig")
        }),
        (None, Some(file)) => read(file, key).map(Some),
        (None, None) => Ok(None),
    }
}

fn read(file: &str, key: &str) -> Result<Vec<u8>> {
    std::fs::read(Path::new(file)).map_err(|error| {
        // A credential pasted in the place of a file name must not be printed.
        let what = if key == "certificate-authority" { file } else { "names a file that cannot be read" };
        Trouble::usage(format!("{key} {what}: {error}"), "correct the path in the kubeconfig")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_stored_is() {
        let token = AuthInfo { token: Some("t".to_owned().into()), ..AuthInfo::default() };
        assert!(matches!(credential(&token), Ok(Credential::Token(_))));
        let pair = AuthInfo {
            client_certificate_data: Some("QQ==".into()),
            client_key_data: Some("Qg==".to_owned().into()),
            ..AuthInfo::default()
        };
        assert!(matches!(credential(&pair), Ok(Credential::X509 { .. })));
        let program = AuthInfo { exec: Some(kube::config::ExecConfig::default()), ..AuthInfo::default() };
        assert!(credential(&program).unwrap_err().what.contains("program"));
        assert!(credential(&AuthInfo::default()).is_err());
        let pasted = AuthInfo { token_file: Some("c2VjcmV0".to_owned()), ..AuthInfo::default() };
        assert!(!credential(&pasted).unwrap_err().what.contains("c2VjcmV0"));
    }

    #[test]
    fn trust_is_what_the_kubeconfig_says() {
        assert_eq!(trust(&Cluster::default(), false).unwrap(), Trust::SystemRoots);
        let insecure = Cluster { insecure_skip_tls_verify: Some(true), ..Cluster::default() };
        let trouble = trust(&insecure, false).unwrap_err();
        assert!(trouble.remedy.contains("--insecure-skip-tls-verify"), "{trouble}");
        assert_eq!(trust(&insecure, true).unwrap(), Trust::Insecure);
        let data = Cluster { certificate_authority_data: Some("UEVN".into()), ..Cluster::default() };
        assert_eq!(trust(&data, false).unwrap(), Trust::Bundle(b"PEM".to_vec()));
        let lost = Cluster { certificate_authority: Some("/nowhere/ca.crt".into()), ..Cluster::default() };
        assert!(trust(&lost, false).unwrap_err().what.contains("/nowhere/ca.crt"));
    }
}
