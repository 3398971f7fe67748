//! Whether the images are set anywhere. No image is published: without a setting, helm waits for
//! pods that never start.

use serde_json::Value;

use super::Install;
use crate::charts::GATEWAY;
use crate::helm;
use crate::session::Options;
use crate::trouble::{Result, Trouble};

/// The image of a program that the chart installs.
struct Image {
    /// Whose it is, for messages.
    of: &'static str,
    /// The values of which each turns the program on. None: it always runs.
    enabled: &'static [&'static str],
    /// The value that names the image.
    repository: &'static str,
    /// Its usual name in a registry.
    name: &'static str,
}

static IMAGES: [Image; 3] = [
    Image { of: "gateway", enabled: &[], repository: "image.repository", name: "cluster-gateway" },
    Image {
        of: "tunnel-server",
        enabled: &["tunnel.server.enabled"],
        repository: "tunnel.server.image.repository",
        name: "tunnel-server",
    },
    Image {
        of: "controllers",
        enabled: &["controllers.enabled", "delivery.enabled"],
        repository: "controllers.image.repository",
        name: "cluster-gateway-controllers",
    },
];
/// helm's message about a release that does not exist.
const NO_RELEASE: &str = "not found";

// === impl Install ===

impl Install {
    /// Refuses to wait for an image that is set nowhere: not on the command line, in the release,
    /// or in a chart other than the gateway's.
    pub(super) async fn refuse_imageless(&self, options: &Options, chart: &str) -> Result<()> {
        let unset = self.unset(options, chart).await?;
        if unset.is_empty() {
            return Ok(());
        }
        let kept = if self.reset_values { Value::Null } else { self.kept(options).await? };
        match unset.into_iter().find(|image| text(&kept, image.repository).is_none()) {
            None => Ok(()),
            Some(Image { of, repository, name, .. }) => Err(Trouble::usage(
                format!("the image of the {of} is not set, and no image is published"),
                format!("build it, push it to your registry and set it: --set {repository}=REGISTRY/{name}"),
            )),
        }
    }

    /// The value that has to name an image, but does not on the command line, nor in a chart other
    /// than the gateway's.
    pub(super) async fn unset_image(&self, options: &Options, chart: &str) -> Result<Option<&'static str>> {
        Ok(self.unset(options, chart).await?.first().map(|image| image.repository))
    }

    async fn unset(&self, options: &Options, chart: &str) -> Result<Vec<&'static Image>> {
        let files: Vec<_> = self.values.iter().map(|file| of_file(file)).collect();
        let mut unset: Vec<_> = IMAGES.iter().filter(|image| is_unset(image, &self.set, &files)).collect();
        if self.chart.is_some() && !unset.is_empty() {
            let words = ["show", "values", chart].map(str::to_owned);
            let shown = self.helm.output(&words, "", helm::LIMIT, &options.interrupted).await?;
            let (shown, own) = (document(&shown), document(GATEWAY.text("values.yaml")));
            unset.retain(|image| text(&shown, image.repository) == text(&own, image.repository));
        }
        Ok(unset)
    }

    /// The values of the release.
    async fn kept(&self, options: &Options) -> Result<Value> {
        let mut words = ["get", "values", &self.release, "--output=json"].map(str::to_owned).to_vec();
        words.push(format!("--namespace={}", self.namespace));
        words.extend(super::hub(options));
        match self.helm.output(&words, "", helm::LIMIT, &options.interrupted).await {
            Ok(values) => Ok(document(&values)),
            Err(trouble) if trouble.what.contains(NO_RELEASE) => Ok(Value::Null),
            Err(trouble) => Err(trouble),
        }
    }
}

/// Whether these lists of values and files turn a program on, and do not name its image. A file
/// that cannot be read here (helm also takes URLs) is `None`, and may name it: helm judges it.
fn is_unset(image: &Image, lists: &[String], files: &[Option<Value>]) -> bool {
    let given = |key: &str, is: fn(&str) -> bool| {
        let value = |pair: &str| Some(is(pair.strip_prefix(key)?.strip_prefix('=')?));
        lists.iter().flat_map(|list| list.split(',')).filter_map(value).any(|is| is)
    };
    let in_files = |is: &dyn Fn(&Value) -> bool| files.iter().flatten().any(is);
    let is_on = |&key: &&str| {
        given(key, |value| value == "true") || in_files(&|values: &Value| *at(values, key) == Value::Bool(true))
    };
    let runs = image.enabled.is_empty() || image.enabled.iter().any(is_on);
    let is_named = given(image.repository, |value| !value.is_empty())
        || in_files(&|values: &Value| text(values, image.repository).is_some())
        || files.contains(&None);
    runs && !is_named
}

fn of_file(file: &str) -> Option<Value> {
    std::fs::read_to_string(file).ok().map(|text| document(&text))
}

/// A YAML document; null if it is none.
fn document(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_default()
}

fn at<'a>(values: &'a Value, key: &str) -> &'a Value {
    key.split('.').fold(values, |value, key| &value[key])
}

fn text<'a>(values: &'a Value, key: &str) -> Option<&'a str> {
    at(values, key).as_str().filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unset(lists: &[&str], files: &[&str]) -> Vec<&'static str> {
        let lists: Vec<_> = lists.iter().map(|&list| list.to_owned()).collect();
        let files: Vec<_> = files.iter().map(|text| Some(document(text))).collect();
        IMAGES.iter().filter(|image| is_unset(image, &lists, &files)).map(|image| image.of).collect()
    }

    #[test]
    fn an_image_is_named_or_not() {
        for list in ["image.repository=r/x", "a=b,image.repository=r/x,c=d"] {
            assert!(unset(&[list], &[]).is_empty(), "{list}");
        }
        for list in ["image.repository=", "tunnel.server.image.repository=r/x", "image.tag=1", ""] {
            assert_eq!(unset(&[list], &[]), ["gateway"], "{list}");
        }
        assert!(unset(&[], &["image: {repository: r/x}\n"]).is_empty());
        for text in ["", "null", "image: {tag: '1'}\n", "image: {repository: ''}\n", "words", "a: ["] {
            assert_eq!(unset(&[], &[text]), ["gateway"], "{text}");
        }
        assert!(!is_unset(&IMAGES[0], &[], &[of_file("https://example.com/v.yaml")]), "helm reads it");
    }

    #[test]
    fn what_is_turned_on_has_an_image_of_its_own() {
        let gateway = "image.repository=r/x";
        let servers = "tunnel.server.enabled=true";
        assert_eq!(unset(&[gateway, servers], &[]), ["tunnel-server"]);
        assert_eq!(unset(&[gateway], &["controllers: {enabled: true}"]), ["controllers"]);
        // The chart runs the controllers for it, too.
        assert_eq!(unset(&[gateway], &["delivery: {enabled: true}"]), ["controllers"]);
        assert_eq!(unset(&[gateway, "delivery.enabled=true"], &[]), ["controllers"]);
        assert!(unset(&[gateway, "tunnel.server.enabled=false"], &["controllers: {enabled: false}"]).is_empty());
        let named = "tunnel: {server: {image: {repository: r/y}}}";
        assert!(unset(&[&format!("{gateway},{servers}")], &[named]).is_empty());
    }

    #[test]
    fn the_chart_has_these_values_and_names_no_registry() {
        let own = document(GATEWAY.text("values.yaml"));
        for image in &IMAGES {
            assert_eq!(text(&own, image.repository), Some(image.name));
            assert!(image.enabled.iter().all(|key| *at(&own, key) == Value::Bool(false)), "{}", image.of);
        }
    }

    #[test]
    fn a_file_of_values_is_looked_into() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "image:\n  repository: r/x\n").unwrap();
        let read = of_file(file.path().to_str().unwrap()).unwrap();
        assert_eq!(text(&read, "image.repository"), Some("r/x"));
    }
}
