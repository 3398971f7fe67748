//! Whether the gateway's image is set anywhere. No image is published: without a setting, helm
//! waits for pods that never start.

use serde_json::Value;

use super::Install;
use crate::charts::GATEWAY;
use crate::helm;
use crate::session::Options;
use crate::trouble::{Result, Trouble};

/// The key of the value, as in `--set`.
const KEY: &str = "image.repository=";
/// helm's message about a release that does not exist.
const NO_RELEASE: &str = "not found";

// === impl Install ===

impl Install {
    /// Refuses to wait for an image that is set nowhere: not on the command line, in the release,
    /// or in a chart other than the gateway's.
    pub(super) async fn refuse_imageless(&self, options: &Options, chart: &str) -> Result<()> {
        if self.is_image_said(options, chart).await? || (!self.reset_values && self.release_says(options).await?) {
            return Ok(());
        }
        Err(Trouble::usage(
            "the gateway's image is not set, and no image is published",
            "build it, push it to your registry and set it: --set image.repository=REGISTRY/cluster-gateway",
        ))
    }

    /// Whether the command line sets the image, or names a chart that sets another than the
    /// gateway's chart.
    pub(super) async fn is_image_said(&self, options: &Options, chart: &str) -> Result<bool> {
        if self.set.iter().any(|list| is_set(list)) || self.values.iter().any(|file| is_in(file)) {
            return Ok(true);
        }
        if self.chart.is_none() {
            return Ok(false);
        }
        let words = ["show", "values", chart].map(str::to_owned);
        let shown = self.helm.output(&words, "", helm::LIMIT, &options.interrupted).await?;
        Ok(repository(&shown) != repository(GATEWAY.text("values.yaml")))
    }

    async fn release_says(&self, options: &Options) -> Result<bool> {
        let mut words = ["get", "values", &self.release, "--output=json"].map(str::to_owned).to_vec();
        words.push(format!("--namespace={}", self.namespace));
        words.extend(super::hub(options));
        match self.helm.output(&words, "", helm::LIMIT, &options.interrupted).await {
            Ok(values) => Ok(repository(&values).is_some()),
            Err(trouble) if trouble.what.contains(NO_RELEASE) => Ok(false),
            Err(trouble) => Err(trouble),
        }
    }
}

/// Whether a list of values sets it.
fn is_set(list: &str) -> bool {
    list.split(',').any(|value| value.strip_prefix(KEY).is_some_and(|image| !image.is_empty()))
}

/// Whether a file of values sets it. True for a file that cannot be read here (helm also takes
/// URLs): helm judges it.
fn is_in(file: &str) -> bool {
    std::fs::read_to_string(file).map_or(true, |text| repository(&text).is_some())
}

/// `image.repository` of a YAML document.
fn repository(text: &str) -> Option<String> {
    let values: Value = serde_saphyr::from_str(text).ok()?;
    values["image"]["repository"].as_str().filter(|image| !image.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_named_or_not() {
        for list in ["image.repository=r/x", "a=b,image.repository=r/x,c=d"] {
            assert!(is_set(list), "{list}");
        }
        for list in ["image.repository=", "tunnel.server.image.repository=r/x", "image.tag=1", ""] {
            assert!(!is_set(list), "{list}");
        }
        assert_eq!(repository("image: {repository: r/x}\n").as_deref(), Some("r/x"));
        for text in ["", "null", "image: {tag: '1'}\n", "image: {repository: ''}\n", "words", "a: ["] {
            assert_eq!(repository(text), None, "{text}");
        }
        assert!(repository(GATEWAY.text("values.yaml")).is_some_and(|own| !own.contains('/')), "no registry has it");
    }

    #[test]
    fn a_file_of_values_is_looked_into() {
        let directory = tempfile::tempdir().unwrap();
        let file = |text: &str| {
            let path = directory.path().join("values.yaml");
            std::fs::write(&path, text).unwrap();
            is_in(path.to_str().unwrap())
        };
        assert!(file("image:\n  repository: r/x\n") && !file("replicas: 3\n") && is_in("https://example.com/v.yaml"));
    }
}
