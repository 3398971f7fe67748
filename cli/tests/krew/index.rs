//! krew itself: it installs, upgrades and removes the plugin with an index and archives on this
//! machine.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use hub_tests::tools::{Tool, provide};
use kit::member::{FakeMember, MemberOptions, Reply};
use serde_json::Value;
use tempfile::TempDir;

use super::{PROGRAM, pack, run, stand_in};

/// A person's machine with krew, and the servers of archives and of the index.
struct Machine {
    directory: TempDir,
    archives: FakeMember,
    _runtime: tokio::runtime::Runtime,
}

// === impl Machine ===

impl Machine {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let directory = TempDir::new().expect("a directory");
        let archives = runtime.block_on(FakeMember::start(MemberOptions::default()));
        let machine = Self { directory, archives, _runtime: runtime };
        let served = machine.file("archives");
        machine.archives.on_any(move |request| {
            let name = request.target.trim_start_matches('/');
            std::fs::read(served.join(name))
                .map_or_else(|_| Reply::not_found(), |archive| Reply::full(200, &[], archive))
        });
        std::fs::write(machine.file("ca.crt"), machine.archives.ca_pem()).expect("a file");
        std::fs::create_dir_all(machine.file("index/plugins")).expect("a directory");
        machine.git(&["init", "--quiet", "--initial-branch=main"]);
        machine
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn git(&self, words: &[&str]) {
        let author = ["-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"];
        run(alone(Command::new("git").current_dir(self.file("index"))).args(author).args(words));
    }

    /// The manifest of a release of this program, whose archives are served.
    fn packed(&self, version: &str, program: &Path) -> String {
        let platform = format!("{}={}", platform(), program.display());
        let archives = self.file("archives");
        let output = pack(&[version, &self.archives.url(), archives.to_str().expect("text"), &platform]);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("text")
    }

    fn publish(&self, manifest: &str) {
        std::fs::write(self.file("index/plugins/clusters.yaml"), manifest).expect("a file");
        self.git(&["add", "."]);
        self.git(&["commit", "--quiet", "--message=clusters"]);
    }

    fn with_krew(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", self.file("krew/bin").display());
        command.env("PATH", path).env("KREW_ROOT", self.file("krew")).env("HOME", self.directory.path());
        // krew would ask GitHub for its own latest release.
        command.env("KREW_NO_UPGRADE_CHECK", "1").env("SSL_CERT_FILE", self.file("ca.crt"));
        alone(&mut command);
        command
    }

    fn krew(&self, words: &[&str]) -> Output {
        let krew = provide(Tool::Krew).expect("krew");
        self.with_krew(&krew).args(words).output().expect("it starts")
    }

    fn krew_ok(&self, words: &[&str]) -> String {
        let output = self.krew(words);
        assert!(output.status.success(), "{words:?}: {output:?}");
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    }

    /// What `kubectl clusters` prints, if kubectl finds it.
    fn kubectl_clusters(&self, words: &[&str]) -> Output {
        let kubectl = provide(Tool::Kubectl).expect("kubectl");
        self.with_krew(&kubectl).arg("clusters").args(words).output().expect("it starts")
    }

    fn is_found(&self) -> bool {
        let output = self.kubectl_clusters(&["--help"]);
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        output.status.success() && told.contains("rotate") && told.contains("detach")
    }
}

/// Runs git without other repositories, such as that of a hook that runs the tests, and without
/// anybody's settings.
fn alone(command: &mut Command) -> &mut Command {
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        command.env_remove(name);
    }
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1")
}

/// The platform that this test runs on, as krew names it.
fn platform() -> String {
    let arch = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let os = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
    format!("{os}-{arch}")
}

#[test]
fn krew_installs_upgrades_and_removes_it_by_an_index() {
    let machine = Machine::new();
    let program = stand_in(&machine.directory);
    let first = machine.packed("v0.1.0", &program);
    // krew refuses an archive that does not match the manifest.
    let manifest: Value = serde_saphyr::from_str(&first).expect("YAML");
    let sum = manifest["spec"]["platforms"][0]["sha256"].as_str().expect("a checksum");
    machine.publish(&first.replace(sum, &"a".repeat(64)));
    let index = machine.file("index");
    machine.krew_ok(&["index", "add", "ours", index.to_str().expect("text")]);
    let told = machine.krew(&["install", "ours/clusters"]);
    assert!(!told.status.success() && String::from_utf8_lossy(&told.stderr).contains("checksum"), "{told:?}");
    assert!(!machine.is_found());
    // The second try works: krew fetches the index before it installs.
    machine.publish(&first);
    let told = machine.krew_ok(&["install", "ours/clusters"]);
    assert!(told.contains("kubectl clusters") && told.contains("current context is the hub"), "{told}");
    assert!(machine.is_found(), "{:?}", machine.kubectl_clusters(&["--help"]));
    let version = machine.kubectl_clusters(&["--version"]);
    assert!(String::from_utf8_lossy(&version.stdout).starts_with("kubectl-clusters "), "{version:?}");
    assert!(machine.krew_ok(&["search", "clusters"]).contains("Join, see and use the clusters"));
    machine.publish(&machine.packed("v0.2.0", &program));
    machine.krew_ok(&["upgrade", "clusters"]);
    assert!(machine.file("krew/store/clusters/v0.2.0/kubectl-clusters").is_file() && machine.is_found());
    machine.krew_ok(&["uninstall", "clusters"]);
    assert!(!machine.is_found());
}

/// Installs it as the page says.
#[test]
fn krew_installs_it_by_a_manifest_and_an_archive() {
    let machine = Machine::new();
    let manifest = machine.file("clusters.yaml");
    std::fs::write(&manifest, machine.packed("v0.1.0", Path::new(PROGRAM))).expect("a file");
    let archive = machine.file(&format!("archives/kubectl-clusters-v0.1.0-{}.tar.gz", platform()));
    let (manifest, archive) =
        (format!("--manifest={}", manifest.display()), format!("--archive={}", archive.display()));
    machine.krew_ok(&["install", &manifest, &archive]);
    assert!(machine.is_found());
    assert_eq!(machine.archives.request_count(), 0, "only the file was read");
}
