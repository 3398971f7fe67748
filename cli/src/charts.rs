//! The charts of this version. They are compiled into the program, so that it takes none from the
//! current directory.

use std::path::PathBuf;

use tempfile::TempDir;

use crate::trouble::{Result, Trouble};

/// A chart: its name and its files.
#[derive(Debug)]
pub struct Chart {
    name: &'static str,
    files: &'static [(&'static str, &'static str)],
}

/// A chart where helm can read it: the user's own, or one in a directory that is deleted with this
/// value.
pub struct Placed {
    pub place: String,
    _directory: Option<TempDir>,
}

macro_rules! chart {
    ($name:literal, $($file:literal),* $(,)?) => {
        Chart {
            name: $name,
            files: &[$(($file, include_str!(concat!("../../charts/", $name, "/", $file)))),*],
        }
    };
}

/// The gateway's chart.
pub const GATEWAY: Chart = chart!(
    "cluster-gateway",
    ".helmignore",
    "Chart.yaml",
    "files/alerts.yaml",
    "files/dashboard.json",
    "templates/NOTES.txt",
    "templates/_controllers.tpl",
    "templates/_helpers.tpl",
    "templates/_kinds-works.tpl",
    "templates/_kinds.tpl",
    "templates/_tunnel.tpl",
    "templates/access.yaml",
    "templates/apiservice.yaml",
    "templates/certificate.yaml",
    "templates/controllers-admission.yaml",
    "templates/controllers-rbac.yaml",
    "templates/controllers-remove.yaml",
    "templates/controllers.yaml",
    "templates/dashboard.yaml",
    "templates/deployment.yaml",
    "templates/horizontalpodautoscaler.yaml",
    "templates/kinds-clusters.yaml",
    "templates/kinds-placement.yaml",
    "templates/kinds-record.yaml",
    "templates/kinds-works.yaml",
    "templates/namespace.yaml",
    "templates/networkpolicy.yaml",
    "templates/poddisruptionbudget.yaml",
    "templates/prometheusrule.yaml",
    "templates/proxy-config.yaml",
    "templates/rbac.yaml",
    "templates/service.yaml",
    "templates/serviceaccount.yaml",
    "templates/servicemonitor.yaml",
    "templates/tunnel-agents.yaml",
    "templates/tunnel-certificates.yaml",
    "templates/tunnel-server.yaml",
    "templates/works-admission.yaml",
    "values-kubevela.yaml",
    "values.schema.json",
    "values.yaml",
);

/// The tunnel-agent's chart.
pub const AGENT: Chart = chart!(
    "tunnel-agent",
    ".helmignore",
    "Chart.yaml",
    "templates/NOTES.txt",
    "templates/_helpers.tpl",
    "templates/ca.yaml",
    "templates/credential.yaml",
    "templates/deployment.yaml",
    "templates/networkpolicy.yaml",
    "templates/poddisruptionbudget.yaml",
    "templates/podmonitor.yaml",
    "templates/register.yaml",
    "templates/serviceaccount.yaml",
    "values.schema.json",
    "values.yaml",
);

// === impl Chart ===

impl Chart {
    /// The chart that the user `named`, or this one, unpacked.
    pub fn or(&self, named: Option<&str>) -> Result<Placed> {
        match named {
            Some(named) => Ok(Placed { place: named.to_owned(), _directory: None }),
            None => self.unpacked().map_err(|error| {
                Trouble::failed(
                    format!("cannot unpack the chart {} into a temporary directory: {error}", self.name),
                    "set TMPDIR to a writable directory, or name a chart",
                )
            }),
        }
    }

    /// The text of one of its files. Empty if it has no such file.
    pub fn text(&self, file: &str) -> &'static str {
        self.files.iter().find(|(name, _)| *name == file).map_or("", |(_, text)| *text)
    }

    /// Its name, and its version from `Chart.yaml`.
    pub fn name_and_version(&self) -> String {
        let version = self.text("Chart.yaml").lines().find_map(|line| line.strip_prefix("version: "));
        format!("{} {}", self.name, version.unwrap_or_default())
    }

    fn unpacked(&self) -> std::io::Result<Placed> {
        let directory = tempfile::tempdir()?;
        let root = directory.path().join(self.name);
        for (file, text) in self.files {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().map_or_else(|| root.clone(), PathBuf::from))?;
            std::fs::write(path, text)?;
        }
        Ok(Placed { place: root.to_string_lossy().into_owned(), _directory: Some(directory) })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::*;

    /// The files in a directory, except the README, which only people read.
    fn read(root: &Path, directory: &Path, into: &mut BTreeMap<String, String>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                read(root, &path, into);
                continue;
            }
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            if name != "README.md" {
                into.insert(name, std::fs::read_to_string(&path).unwrap());
            }
        }
    }

    fn tree(root: &Path) -> BTreeMap<String, String> {
        let mut files = BTreeMap::new();
        read(root, root, &mut files);
        files
    }

    #[test]
    fn a_chart_is_unpacked_as_it_is_and_taken_away() {
        for chart in [GATEWAY, AGENT] {
            let placed = chart.or(None).unwrap();
            let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../charts").join(chart.name);
            let (unpacked, source) = (tree(Path::new(&placed.place)), tree(&source));
            assert!(unpacked == source, "the files of the chart {} are not those of charts.rs", chart.name);
            let place = placed.place.clone();
            drop(placed);
            assert!(!Path::new(&place).exists());
            assert_eq!(chart.or(Some("oci://x")).unwrap().place, "oci://x");
            assert_eq!(chart.name_and_version(), format!("{} {}", chart.name, env!("CARGO_PKG_VERSION")));
        }
    }
}
