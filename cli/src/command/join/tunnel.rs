//! `join --tunnel`: the agent's identity on the hub, and the agent on the member.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use api::cluster_name::ClusterName;
use api::secret::CA_KEY;
use api::{GROUP, VERSION};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt as _;
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use crate::account::Account;
use crate::agent::{self, Servers};
use crate::member::Member;
use crate::session::{self, Session};
use crate::trouble::{Result, Trouble};
use crate::{charts, helm, namespace, output, servers};

/// Options of `join --tunnel`.
#[derive(Debug, clap::Args)]
pub struct Tunnel {
    /// Install an agent on the member that dials out, for members that the gateway cannot reach
    #[arg(id = "tunnel", long)]
    pub wanted: bool,
    /// Address of tunnel-servers that agents dial; may be given more than once [default: the
    /// agents' Service on the hub, or the name in its certificate]
    #[arg(long = "server", value_name = "HOST:PORT", requires = "tunnel")]
    servers: Vec<String>,
    /// Name in the servers' certificate [default: the name of the agents' Service, if the
    /// certificate has it]
    #[arg(long, value_name = "NAME", requires = "tunnel")]
    server_name: Option<String>,
    /// PEM file of the CA of the servers' certificate [default: the CA beside the certificate on
    /// the hub, else the CAs of the agent's image]
    #[arg(long, value_name = "FILE", requires = "tunnel")]
    server_ca: Option<PathBuf>,
    /// The chart tunnel-agent: a directory, or an address for helm [default: the chart of this
    /// program's version]
    #[arg(long, value_name = "CHART", requires = "tunnel")]
    agent_chart: Option<String>,
    /// The agent's image [default: `tunnel-agent` with the registry and tag of the hub's programs,
    /// else the chart's]
    #[arg(long, value_name = "IMAGE", requires = "tunnel")]
    agent_image: Option<String>,
    /// A value of the agent's chart, such as proxy.url; may be given more than once
    #[arg(long, value_name = "KEY=VALUE", requires = "tunnel")]
    agent_set: Vec<String>,
    /// A file of values of the agent's chart; may be given more than once
    #[arg(long, value_name = "FILE", requires = "tunnel", value_parser = values_file)]
    agent_values: Vec<String>,
    /// Print the agent's manifests instead of applying them; its Secret is still applied
    #[arg(long, requires = "tunnel")]
    pub print: bool,
    #[command(flatten)]
    helm: helm::Options,
}

/// The ways without what the person may not read on the hub.
const WITHOUT_CERTIFICATE: &str = "give the CA of the certificate with --server-ca FILE";
const WITHOUT_SERVICE: &str = "give --server HOST:PORT and --server-ca FILE";

// === impl Tunnel ===

impl Tunnel {
    /// The servers that agents link to, from the options, or else from the hub.
    pub async fn servers(&self, session: &Session) -> Result<Servers> {
        let authority = self.server_ca.as_ref().map(|file| {
            let read = std::fs::read_to_string(file);
            read.map_err(|error| Trouble::usage(format!("--server-ca {}: {error}", file.display()), "correct the path"))
        });
        let authority = authority.transpose()?;
        if !self.servers.is_empty() && authority.is_some() {
            return Ok(Servers { addresses: self.servers.clone(), name: self.server_name.clone(), authority });
        }
        let service = service(session).await?;
        let certificate = match servers::certificate(session, &service).await {
            // A person that gives its CA need not be allowed to read it.
            Err(_) if authority.is_some() => None,
            found => found.map_err(|trouble| unread(trouble, WITHOUT_CERTIFICATE))?,
        };
        let known = certificate.as_ref().and_then(servers::names);
        let names = if self.server_name.is_some() { None } else { known.as_deref() };
        let (addresses, name) = servers::dialled(&service, names, &self.servers)?;
        let name = self.server_name.clone().or(name);
        let authority = match authority {
            Some(authority) => Some(authority),
            None => authority_beside(certificate, known.as_deref(), &service)?,
        };
        Ok(Servers { addresses, name, authority })
    }

    /// Refuses a hub whose gateway links no agents, before anything is created.
    pub async fn may_link(&self, session: &Session) -> Result<()> {
        let path = format!("/apis/{GROUP}/{VERSION}");
        match session.bounded(session::get_small(session.hub(), &path)).await {
            Ok(served) if !links_agents(&served) => Err(Trouble::failed(
                "the hub's gateway is the Go cluster-gateway, which links no agents",
                "replace it with this one (`kubectl clusters install`; see docs/migration.md), or register the cluster \
                 without --tunnel",
            )),
            // Other failures appear again later, with their own cause.
            _ => Ok(()),
        }
    }

    /// Refuses an account of the agent on the hub that this program did not create, before anything
    /// is created.
    pub async fn may_identify(&self, session: &Session, name: &ClusterName) -> Result<()> {
        let hub = Member::hub(session).await?;
        let account = agent::account(name, &namespace::of_gateway(session).await?)?;
        hub.refuse_foreign(&account).await.map(drop).map_err(|trouble| {
            let remedy = format!(
                "remove {name} from tunnel.agents of the gateway's chart, if the chart created it, or delete it"
            );
            on_hub(trouble).remedied(remedy)
        })
    }

    /// Creates the agent's identity on the hub. Returns its account and its token.
    pub async fn identity(&self, session: &Session, name: &ClusterName) -> Result<(Account, crate::member::Token)> {
        let hub = Member::hub(session).await?;
        let account = agent::account(name, &namespace::of_gateway(session).await?)?;
        let owner = hub.make(&account, &agent::rights(name)).await.map_err(on_hub)?;
        let token = hub.token(&account, &owner).await.map_err(on_hub)?;
        output::say(&format!("ServiceAccount {} on the hub: created, may link {name}", account.path()));
        Ok((account, token))
    }

    /// The agent's manifests, for a member of this `version`.
    pub async fn manifests(
        &self,
        session: &Session,
        name: &ClusterName,
        namespace: &str,
        servers: &Servers,
        version: &str,
    ) -> Result<Vec<Value>> {
        let chart = charts::AGENT.or(self.agent_chart.as_deref())?;
        // helm contacts no cluster while it renders, and assumes a version of its own.
        let words = ["template", agent::RELEASE, &chart.place, "--namespace", namespace, "--kube-version", version];
        let mut words: Vec<_> = words.map(str::to_owned).to_vec();
        let guessed = match &self.agent_image {
            Some(_) => None,
            None => servers::agents_image(session, &namespace::of_gateway(session).await?).await,
        };
        let guessed = guessed.map(|image| image_file(&image)).transpose()?;
        let guessed = guessed.as_ref().map(NamedTempFile::path);
        let values = agent::values(name, servers, self.agent_image.as_deref());
        words.extend(value_options(guessed, &self.agent_values, &self.agent_set, &values));
        let interrupted = &session.options.interrupted;
        let text = self.helm.output(&words, &values.to_string(), helm::LIMIT, interrupted).await?;
        let documents: Vec<Value> = serde_saphyr::from_multiple(&text)
            .map_err(|_| Trouble::failed("helm rendered invalid YAML", "see the chart"))?;
        Ok(documents.into_iter().filter(Value::is_object).collect())
    }

    /// Installs the agent on the member, or prints its manifests. The binding of `account`, whose
    /// uid is `owner`, owns it.
    pub async fn install(
        &self,
        member: &Member,
        manifests: Vec<Value>,
        secret: Value,
        (account, owner): (&Account, &str),
    ) -> Result<()> {
        let claim = member.claim(account);
        member.apply_any(&claim, &agent::owned(secret, account, owner)).await?;
        let mut printed = String::new();
        for document in manifests {
            let mut document = agent::owned(document, account, owner);
            if self.print {
                claim.put_on(&mut document);
                printed.extend(["---\n", &output::to_yaml(&document)?]);
            } else {
                member.apply_any(&claim, &document).await?;
            }
        }
        if self.print {
            output::print(&printed)?;
            output::say("Apply these on the member; waiting for the agent to link");
        } else {
            output::say(&format!(
                "Deployment {}/{} on the member: applied; waiting for it to link",
                account.namespace,
                agent::RELEASE
            ));
        }
        Ok(())
    }
}

/// A file of values with this image: a person's own files override it.
fn image_file(image: &str) -> Result<NamedTempFile> {
    let values = json!({"image": agent::image_values(image)}).to_string();
    let written = NamedTempFile::new().and_then(|mut file| file.write_all(values.as_bytes()).map(|()| file));
    written.map_err(|error| {
        Trouble::failed(
            format!("cannot write values of the agent's chart to a temporary file: {error}"),
            "set TMPDIR to a writable directory, or give --agent-image",
        )
    })
}

/// helm's options for values. Each overrides those before it: the `guessed` image, a person's
/// `files`, what the person `set`, and our `own`, which name the cluster and its Secret. These come
/// from standard input too, because options set no key below one to which a file gives a text.
fn value_options(guessed: Option<&Path>, files: &[String], set: &[String], own: &Value) -> Vec<String> {
    let guessed = guessed.map(|file| format!("--values={}", file.display()));
    let files = files.iter().map(String::as_str).chain(["-"]).map(|file| format!("--values={file}"));
    let set = set.iter().map(|value| format!("--set={value}"));
    guessed.into_iter().chain(files).chain(set).chain(helm::set_strings("", own)).collect()
}

/// A file of values, or several, which helm separates by commas.
fn values_file(file: &str) -> std::result::Result<String, &'static str> {
    if file.split(',').any(|file| file.trim_matches('"') == "-") {
        return Err("the agent's values are not read from standard input: give a file");
    }
    Ok(file.to_owned())
}

/// Whether a gateway that serves these resources has a tunnel of its own. Only the Go
/// cluster-gateway serves `clustergateways` without `clustergateways/traffic`.
fn links_agents(served: &[u8]) -> bool {
    let Ok(served) = serde_json::from_slice::<Value>(served) else { return true };
    let has = |name: &str| served["resources"].as_array().is_some_and(|all| all.iter().any(|one| one["name"] == name));
    has("clustergateways/traffic") || !has("clustergateways")
}

/// Names the hub in the trouble's text. For accounts of agents, the hub is a [`Member`], whose
/// troubles begin with "member".
fn on_hub(trouble: Trouble) -> Trouble {
    Trouble { what: trouble.what.replacen("member: ", "hub: ", 1), ..trouble }
}

/// The Service that agents dial.
async fn service(session: &Session) -> Result<Service> {
    let namespace = namespace::of_gateway(session).await?;
    let found = servers::service(session, &namespace).await;
    found.map_err(|trouble| unread(trouble, WITHOUT_SERVICE))?.ok_or_else(|| {
        Trouble::failed(
            format!("the hub accepts no agents: the namespace {namespace} has no Service for them"),
            "`kubectl clusters install --set tunnel.server.enabled=true,tunnel.server.image.repository=…`, with \
             your registry's tunnel-server, or give --server and --server-ca",
        )
    })
}

/// The same, with the `way` to do without a right that the person lacks.
fn unread(trouble: Trouble, way: &str) -> Trouble {
    if !trouble.is_forbidden() {
        return trouble;
    }
    let remedy = if trouble.remedy.is_empty() { way.to_owned() } else { format!("{}, or {way}", trouble.remedy) };
    trouble.when("cannot find out what agents dial").remedied(remedy)
}

/// The CA beside the tunnel-servers' `certificate`, which is for `names`; `None`: a public one,
/// which agents' systems have. That issues nothing for the name of a Service.
fn authority_beside(
    certificate: Option<BTreeMap<String, ByteString>>,
    names: Option<&[String]>,
    service: &Service,
) -> Result<Option<String>> {
    let pem = certificate.and_then(|mut data| data.remove(CA_KEY)).and_then(|pem| String::from_utf8(pem.0).ok());
    let pem = pem.filter(|pem| !pem.is_empty());
    if pem.is_some() {
        return Ok(pem);
    }
    if names.is_some_and(|names| !names.contains(&servers::own_name(service))) {
        output::say(
            "The tunnel-servers' certificate has no CA beside it: agents use the CAs of their image, unless you give \
             --server-ca",
        );
        return Ok(None);
    }
    let namespace = service.namespace().unwrap_or_default();
    let what = format!("the CA of the tunnel-servers' certificate is not in {namespace}");
    Err(Trouble::failed(what, "give it with --server-ca FILE"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_not_look_for_the_certificate_may_bring_its_ca() {
        let forbidden = "deployments.apps is forbidden: User \"jane\" cannot list resource";
        let trouble = unread(Trouble::failed(forbidden, "ask for the right"), WITHOUT_CERTIFICATE);
        assert!(trouble.what.ends_with(forbidden), "{trouble}");
        assert_eq!(trouble.remedy, "ask for the right, or give the CA of the certificate with --server-ca FILE");
        assert_eq!(unread(Trouble::failed(forbidden, ""), WITHOUT_SERVICE).remedy, WITHOUT_SERVICE);
        let away = Trouble::late(std::time::Duration::from_secs(1));
        assert_eq!(unread(away.clone(), WITHOUT_CERTIFICATE), away);
    }

    #[test]
    fn a_guessed_image_gives_way_to_a_persons_values_and_ours_do_not() {
        let (files, set) = (["own.yaml".to_owned()], ["image.tag=2".to_owned()]);
        let file = image_file("registry:5000/tunnel-agent:1").unwrap();
        let guessed = file.path().display().to_string();
        let expected = [
            format!("--values={guessed}"),
            "--values=own.yaml".into(),
            "--values=-".into(),
            "--set=image.tag=2".into(),
            "--set-string=cluster=berlin".into(),
        ];
        assert_eq!(value_options(Some(file.path()), &files, &set, &json!({"cluster": "berlin"})), expected);
        assert_eq!(value_options(None, &[], &[], &json!({})), ["--values=-"]);
        let written: Value = serde_json::from_slice(&std::fs::read(&guessed).unwrap()).unwrap();
        assert_eq!(written, json!({"image": {"repository": "registry:5000/tunnel-agent", "tag": "1"}}));
    }

    #[test]
    fn standard_input_is_no_file_of_a_person() {
        for input in ["-", "own.yaml,-", "\"-\""] {
            assert!(values_file(input).is_err(), "{input}");
        }
        assert_eq!(values_file("my-own.yaml").as_deref(), Ok("my-own.yaml"));
    }

    #[test]
    fn only_the_go_gateway_links_no_agents() {
        let served = |names: &[&str]| {
            let resources: Vec<_> = names.iter().map(|name| json!({"name": name})).collect();
            json!({"resources": resources}).to_string()
        };
        assert!(!links_agents(served(&["clustergateways", "clustergateways/proxy"]).as_bytes()));
        assert!(links_agents(served(&["clustergateways", "clustergateways/traffic"]).as_bytes()));
        // A response that cannot be read proves nothing.
        assert!(links_agents(served(&[]).as_bytes()) && links_agents(b"no JSON"));
    }
}
