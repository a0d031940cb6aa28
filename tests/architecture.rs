//! What the layers may use, where `unsafe` may stand, and which rustls is the oldest: read from the
//! sources themselves.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// Modules from the top down, and what each may use beside its own parts. No arrow goes up.
const LAYERS: &[(&str, &[&str])] = &[
    ("lib", &["cipher_suite", "provider", "tls", "aead", "backend"]),
    ("cipher_suite", &["provider", "tls"]),
    ("provider", &["tls", "backend"]),
    ("tls", &["aead", "backend"]),
    ("aead", &["backend", "kernel", "chacha20", "isa::text"]),
    ("backend", &["kernel", "isa", "isa::*"]),
    ("kernel", &["chacha20", "poly1305", "isa", "isa::text"]),
    // one file per instruction set
    ("isa::*", &["chacha20", "poly1305", "isa", "isa::clear", "isa::text"]),
    ("chacha20", &["isa", "isa::text"]),
    ("poly1305", &["isa", "isa::text"]),
    ("isa", &["isa::clear", "isa::text", "isa::x86"]),
    ("isa::clear", &[]),
    ("isa::x86", &[]),
    ("isa::text", &[]),
];

#[test]
fn arrows_point_down() {
    let mut arrows = 0;
    for (path, source) in sources() {
        // unit tests in files of their own may look around
        if path.ends_with("tests.rs") {
            continue;
        }
        let module = module_of(&path);
        let (_, allowed) = LAYERS[rank(&module)];
        for used in uses(&module, &source) {
            let used_layer = LAYERS[rank(&used)].0;
            if used_layer == LAYERS[rank(&module)].0 && used_layer != "isa::*" {
                continue;
            }
            assert!(allowed.contains(&used_layer), "{} uses {used}", path.display());
            arrows += 1;
        }
    }
    assert!(arrows > 25, "only {arrows} arrows were found");
}

/// The table above is itself in order.
#[test]
fn layers_are_in_order() {
    for (from, (module, allowed)) in LAYERS.iter().enumerate() {
        for used in *allowed {
            let to = LAYERS.iter().position(|(name, _)| name == used).unwrap();
            assert!(to > from, "{module} is not above {used}");
        }
    }
}

#[test]
fn unsafe_is_in_the_isa_folder_only() {
    let mut found = 0;
    for (path, source) in sources() {
        let isa = path.starts_with(root().join("src/isa"));
        for line in source.lines().map(without_comment) {
            let unsafe_here = words(line).any(|word| word == "unsafe");
            assert!(isa || !unsafe_here, "{}: {line}", path.display());
            found += usize::from(unsafe_here);
            let allows = line.contains("allow(unsafe_code)");
            assert!(isa || !allows || path.ends_with("src/isa.rs"), "{}: {line}", path.display());
        }
    }
    assert!(found > 0);
    assert!(manifest().lines().any(|line| line == r#"unsafe_code = "deny""#));
}

/// K48: earlier releases of rustls have RUSTSEC-2026-0285.
#[test]
fn rustls_is_at_least_0_23_45() {
    let manifest = manifest();
    let floors: Vec<[u32; 3]> = manifest
        .lines()
        .filter(|line| line.starts_with("rustls = {"))
        .map(|line| {
            let version = line.split('"').nth(1).unwrap();
            let parts: Vec<u32> = version.split('.').map(|part| part.parse().unwrap()).collect();
            parts.try_into().unwrap()
        })
        .collect();
    assert!(!floors.is_empty());
    for floor in floors {
        assert!(floor >= [0, 23, 45], "the floor is {floor:?}");
    }
}

/// `docs/evidence.md` names tests that exist, and what tests a fault names it.
#[test]
fn evidence_exists() {
    let evidence = fs::read_to_string(root().join("docs/evidence.md")).unwrap();
    let tests: String = ["src", "tests", "fuzz/body", ".ci"]
        .iter()
        .flat_map(|folder| files(&root().join(folder)))
        .filter(|path| !path.ends_with(".ci/faults"))
        .filter_map(|path| fs::read_to_string(path).ok())
        .collect();
    let is_name = |code: &&str| {
        code.contains('_') && code.chars().all(|c| c == '_' || c.is_ascii_alphanumeric())
    };
    let names: Vec<&str> = evidence.split('`').skip(1).step_by(2).filter(is_name).collect();
    assert!(names.len() > 40, "only {} tests are named", names.len());
    for name in names {
        assert!(tests.contains(&format!("fn {name}(")), "no test is called {name}");
    }
    let ids: Vec<&str> = evidence
        .lines()
        .filter_map(|row| row.strip_prefix("| K").and_then(|_| row.get(2..5)))
        .collect();
    assert!(ids.len() > 28, "only {} faults are named", ids.len());
    for id in ids {
        assert!(tests.contains(id), "nothing names {id}");
    }
}

/// The layer that `module` belongs to: its own, or the one of the module that it is a part of.
fn rank(module: &str) -> usize {
    let position = |name: &str| LAYERS.iter().position(|(layer, _)| *layer == name);
    let (top, _) = module.split_once("::").unwrap_or((module, ""));
    position(module)
        .or_else(|| (top == "isa" && module != "isa").then(|| position("isa::*")).flatten())
        .or_else(|| position(top))
        .unwrap_or_else(|| panic!("{module} is in no layer: add it to the table"))
}

fn module_of(path: &Path) -> String {
    let path = path.strip_prefix(root().join("src")).unwrap().with_extension("");
    let parts: Vec<&str> = path.iter().map(|part| part.to_str().unwrap()).collect();
    parts.join("::").trim_end_matches("::mod").to_owned()
}

/// The modules that the source of `module` names, its unit tests left out.
fn uses(module: &str, source: &str) -> Vec<String> {
    let (source, _) = source.split_once("#[cfg(test)]\nmod ").unwrap_or((source, ""));
    let parent = module.rsplit_once("::").map_or("", |(parent, _)| parent);
    let mut used = Vec::new();
    for line in source.lines().map(without_comment) {
        assert!(!line.contains("crate::{"), "one `use` per module, please: {line}");
        used.extend(line.split("crate::").skip(1).map(modules_of));
        if let Some(path) = line.strip_prefix("use super::") {
            let path = modules_of(path);
            used.push([parent, &path].join("::").trim_end_matches("::").to_owned());
        }
    }
    used.into_iter().filter(|path| !path.is_empty()).collect()
}

/// `isa::text::{Source, Text};` is of `isa::text`: names of modules are in lower case. The root
/// re-exports [`backend`]'s types.
fn modules_of(path: &str) -> String {
    if path.starts_with("Backend") {
        return "backend".to_owned();
    }
    let name = |part: &&str| {
        part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    let path = path.split([';', ' ', '<', '(', ')', ',', '}']).next().unwrap();
    let parts: Vec<&str> = path.split("::").take_while(name).collect();
    // a function's name after its module's is no module
    let is_module = |n: usize| {
        let path = root().join("src").join(parts[..n].join("/"));
        path.is_dir() || path.with_extension("rs").is_file()
    };
    (0..=parts.len())
        .rev()
        .find(|&n| n == 0 || is_module(n))
        .map_or_else(String::new, |n| parts[..n].join("::"))
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_')
}

fn without_comment(line: &str) -> &str {
    line.split("//").next().unwrap()
}

fn sources() -> Vec<(PathBuf, String)> {
    files(&root().join("src"))
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| (path.clone(), fs::read_to_string(path).unwrap()))
        .collect()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let (folders, mut files): (Vec<PathBuf>, Vec<PathBuf>) = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| !path.ends_with("target"))
        .partition(|path| path.is_dir());
    files.extend(folders.iter().flat_map(|folder| self::files(folder)));
    files
}

fn manifest() -> String {
    fs::read_to_string(root().join("Cargo.toml")).unwrap()
}

fn root() -> PathBuf {
    env::var_os("CARGO_MANIFEST_DIR").unwrap().into()
}
