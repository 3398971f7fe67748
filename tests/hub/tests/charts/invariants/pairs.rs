//! The certificates of the tunnel: which program has which, for which names, and which CAs it
//! trusts.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hub_tests::prelude::*;
use kit::pki;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::{GATEWAY, Objects, flags};

/// One generated Secret: a certificate, its key, and the CA to trust.
struct Pair<'a>(&'a Value);

/// Each volume of Secrets matches the flags about it, and its certificates serve their purpose.
pub(super) fn check(objects: &Objects<'_>) -> Result<()> {
    if let Some(server) = objects.workload("tunnel-server") {
        let server = secrets(server);
        let gateway = objects.workload(GATEWAY).context("no gateway")?;
        let container = &gateway["spec"]["template"]["spec"]["containers"][0];
        let host = flags(container).find_map(|flag| flag.strip_prefix("--proxy-host=")).context("no --proxy-host")?;
        let service = host.strip_suffix(".vela-system.svc").with_context(|| format!("another name: {host}"))?;
        let service = objects.of("Service").find(|object| object["metadata"]["name"] == service);
        let service = service.with_context(|| format!("{host} is no Service"))?;
        ensure!(service["spec"]["clusterIP"] == "None", "{host} is one address, not all replicas'");
        let (agents, frontends) = (server("agents")?, server("frontends")?);
        let client = secrets(gateway)("tunnel")?;
        ensure!(frontends != client && agents != client && agents != frontends, "a key is shared");
        let authority = server("agents-ca").ok();
        ensure!(authority.is_none_or(|authority| authority != frontends), "agents' CA is the frontends'");
        between_gateways_and_servers(objects, host, frontends, client)?;
        for_agents(objects, agents)?;
    }
    if let Some(gateway) = objects.workload(GATEWAY).filter(|_| objects.case.starts_with("embedded")) {
        for_agents(objects, secrets(gateway)("tunnel")?)?;
    }
    Ok(())
}

/// The Secret of a volume of `deployment`.
fn secrets<'a>(deployment: &'a Value) -> impl Fn(&str) -> Result<&'a str> {
    move |name: &str| {
        let volumes = deployment["spec"]["template"]["spec"]["volumes"].as_array().context("no volumes")?;
        let volume =
            volumes.iter().find(|volume| volume["name"] == name).with_context(|| format!("no volume {name}"))?;
        volume["secret"]["secretName"].as_str().with_context(|| format!("{name} is no Secret"))
    }
}

fn between_gateways_and_servers(objects: &Objects<'_>, host: &str, server: &str, client: &str) -> Result<()> {
    if let (Some(server), Some(client)) = (Pair::of(objects, server), Pair::of(objects, client)) {
        handshake(&server, Some(&server), &client, host).context("gateway and tunnel-server")?;
        let agents = objects.of("Secret").filter(|secret| secret["metadata"]["name"] != client.0["metadata"]["name"]);
        let stranger = |pair: &Pair<'_>| {
            let data = &pair.0["data"];
            data["tls.crt"].is_string() && data["ca.crt"] != server.0["data"]["ca.crt"]
        };
        for stranger in agents.map(Pair).filter(stranger) {
            let outcome = handshake(&server, Some(&server), &Pair(&stranger.with_authority_of(&server)), host);
            ensure!(outcome.is_err(), "a certificate of another authority is a gateway's");
        }
        return Ok(());
    }
    if server.starts_with("mine") {
        return Ok(());
    }
    let (server, client) = (certificate(objects, server)?, certificate(objects, client)?);
    ensure!(server["spec"]["issuerRef"] == client["spec"]["issuerRef"], "two issuers");
    ensure!(server["spec"]["dnsNames"] == json!([host]), "{}", server["spec"]["dnsNames"]);
    ensure!(server["spec"]["usages"][0] == "server auth" && client["spec"]["usages"][0] == "client auth", "usages");
    let issuer = server["spec"]["issuerRef"]["name"].as_str().unwrap_or_default();
    ensure!(objects.has("Issuer", issuer), "whoever has a certificate of {issuer} would be a gateway");
    Ok(())
}

fn for_agents(objects: &Objects<'_>, secret: &str) -> Result<()> {
    let own = objects.of("Service").filter_map(|service| service["metadata"]["name"].as_str());
    let own = own.filter(|name| name.ends_with("-agents")).map(|name| format!("{name}.vela-system.svc")).next();
    let own = own.context("no Service for agents")?;
    if let Some(pair) = Pair::of(objects, secret) {
        let others: &[&str] =
            if objects.case == "tunnel-servers" { &["hub.example.test", "192.0.2.7", "2001:db8::7"] } else { &[] };
        for name in others.iter().chain([&&*own]) {
            handshake(&pair, None, &pair, name).with_context(|| format!("an agent that dials {name}"))?;
        }
    } else if !secret.starts_with("mine") {
        let spec = &certificate(objects, secret)?["spec"];
        let public = spec["issuerRef"]["name"] == "public";
        let names = spec["dnsNames"].as_array().context("no names")?;
        // Only a private CA certifies a cluster's internal name.
        ensure!(names.contains(&json!(own)) != public, "{names:?}");
        ensure!(names.contains(&json!("hub.example.test")) || objects.case == "embedded", "{names:?}");
        ensure!(
            public || objects.case == "embedded" || spec["ipAddresses"] == json!(["192.0.2.7", "2001:db8::7"]),
            "{spec}"
        );
    }
    Ok(())
}

fn certificate<'a>(objects: &Objects<'a>, secret: &str) -> Result<&'a Value> {
    let certificate = objects.of("Certificate").find(|object| object["spec"]["secretName"] == secret);
    certificate.with_context(|| format!("nobody fills Secret {secret}"))
}

/// A TLS connection to `server`, which requires a certificate of the CA of `asked`, by the holder
/// of `client`, who trusts that pair's CA.
fn handshake(server: &Pair<'_>, asked: Option<&Pair<'_>>, client: &Pair<'_>, name: &str) -> Result<()> {
    let builder = ServerConfig::builder_with_provider(pki::provider()).with_safe_default_protocol_versions()?;
    let builder = match asked {
        Some(asked) => {
            let roots = Arc::new(asked.roots()?);
            builder
                .with_client_cert_verifier(WebPkiClientVerifier::builder_with_provider(roots, pki::provider()).build()?)
        }
        None => builder.with_no_client_auth(),
    };
    let acceptor = TlsAcceptor::from(Arc::new(builder.with_single_cert(server.chain()?, server.key()?)?));
    let builder = ClientConfig::builder_with_provider(pki::provider()).with_safe_default_protocol_versions()?;
    let builder = builder.with_root_certificates(client.roots()?);
    let connector = TlsConnector::from(Arc::new(builder.with_client_auth_cert(client.chain()?, client.key()?)?));
    let name = ServerName::try_from(name.to_owned())?;
    let (near, far) = tokio::io::duplex(64 * 1024);
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(async {
        let accept = async {
            let mut stream = acceptor.accept(far).await?;
            // In TLS 1.3 the client learns only now whether its certificate was accepted.
            stream.write_all(b"!").await?;
            stream.flush().await?;
            anyhow::Ok(stream)
        };
        let connect = async { anyhow::Ok(connector.connect(name, near).await?.read_u8().await?) };
        let (accepted, connected) = tokio::join!(accept, connect);
        let (_, byte) = (accepted?, connected?);
        if byte == b'!' { Ok(()) } else { bail!("not what was written: {byte}") }
    })
}

// === impl Pair ===

impl<'a> Pair<'a> {
    /// The Secret `name`, if it is rendered.
    fn of(objects: &Objects<'a>, name: &str) -> Option<Self> {
        objects.of("Secret").find(|secret| secret["metadata"]["name"] == name).map(Self)
    }

    fn bytes(&self, key: &str) -> Result<Vec<u8>> {
        let text =
            self.0["data"][key].as_str().with_context(|| format!("no {key} in {}", self.0["metadata"]["name"]))?;
        Ok(BASE64.decode(text)?)
    }

    fn chain(&self) -> Result<Vec<CertificateDer<'static>>> {
        Ok(CertificateDer::pem_slice_iter(&self.bytes("tls.crt")?).collect::<Result<_, _>>()?)
    }

    fn key(&self) -> Result<PrivateKeyDer<'static>> {
        Ok(PrivateKeyDer::from_pem_slice(&self.bytes("tls.key")?)?)
    }

    fn roots(&self) -> Result<RootCertStore> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&self.bytes("ca.crt")?) {
            roots.add(certificate?)?;
        }
        Ok(roots)
    }

    /// The same pair with the CA that `other` trusts.
    fn with_authority_of(&self, other: &Self) -> Value {
        let mut secret = self.0.clone();
        secret["data"]["ca.crt"] = other.0["data"]["ca.crt"].clone();
        secret
    }
}
