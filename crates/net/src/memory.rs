//! Finds the memory limit of this process.

use std::fs;
use std::path::{Component, Path};

use rustix::process::{Resource, getrlimit};

/// Bytes that the process may use before the kernel ends it or refuses more: the lowest limit of
/// its control groups (v1 and v2, including their parents), `RLIMIT_DATA` and `RLIMIT_AS`. `None`
/// if no limit is known.
pub fn limit() -> Option<u64> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let groups = of_groups(Path::new("/sys/fs/cgroup"), &own);
    let limits = [Resource::Data, Resource::As].map(|resource| getrlimit(resource).current);
    limits.into_iter().chain([groups]).flatten().min()
}

/// `root` is the directory of the control groups, `own` the contents of `/proc/self/cgroup`
/// (cgroups(7)): `hierarchy:controllers:path`, one per line.
#[doc(hidden)]
pub fn of_groups(root: &Path, own: &str) -> Option<u64> {
    let group = |line: &str| {
        let (_, line) = line.split_once(':')?;
        let (controllers, path) = line.split_once(':')?;
        if controllers.is_empty() {
            return Some((root.to_owned(), path.to_owned(), "memory.max"));
        }
        let memory = controllers.split(',').any(|controller| controller == "memory");
        memory.then(|| (root.join("memory"), path.to_owned(), "memory.limit_in_bytes"))
    };
    own.lines().filter_map(group).filter_map(|(root, path, file)| of_ancestors(&root, &path, file)).min()
}

/// A container may see its group as the root, or by its path outside, which does not exist inside.
/// So the root is always checked.
fn of_ancestors(root: &Path, path: &str, file: &str) -> Option<u64> {
    let path = Path::new(path.trim_start_matches('/'));
    // With `/..`, the group is outside our namespace (cgroup_namespaces(7)), and only the
    // namespace's root is visible. The path itself would lead to files of no group.
    let outside = path.components().any(|part| part == Component::ParentDir);
    let group = if outside { root.to_owned() } else { root.join(path) };
    let within = group.ancestors().take_while(|ancestor| ancestor.starts_with(root));
    within.filter_map(|ancestor| read(&ancestor.join(file))).min()
}

/// A number of bytes. `max` (v2) and the huge numbers of v1 mean no limit.
fn read(file: &Path) -> Option<u64> {
    const NONE: u64 = 1 << 60;
    fs::read_to_string(file).ok()?.trim().parse().ok().filter(|limit| *limit < NONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_limit_of_the_groups_counts() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, limit: &str| {
            let file = root.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, limit).unwrap();
        };
        let limit = |own: &str| of_groups(root.path(), own);
        assert_eq!(limit("0::/\n"), None);
        write("kubepods/memory.max", "2147483648\n");
        write("kubepods/pod/memory.max", "max\n");
        assert_eq!(limit("0::/kubepods/pod\n"), Some(2 << 30), "of the parent");
        write("kubepods/pod/memory.max", "1073741824\n");
        assert_eq!(limit("0::/kubepods/pod\n"), Some(1 << 30));
        // As seen inside a container whose group is the root.
        write("memory.max", "536870912\n");
        assert_eq!(limit("0::/somewhere/outside\n"), Some(512 << 20));
        write("memory/docker/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(limit("5:cpu,memory:/docker\n"), None, "v1 has no word for no limit");
        write("memory/docker/memory.limit_in_bytes", "268435456\n");
        assert_eq!(limit("5:cpu,memory:/docker\n4:cpuset:/docker\n"), Some(256 << 20));
        assert_eq!(limit("nonsense\n:\n"), None);
        let inside = |own: &str| of_groups(&root.path().join("kubepods"), own);
        assert_eq!(inside("0::/../elsewhere\n"), Some(2 << 30), "of the namespace's root, and nothing beside it");
    }
}
