//! The page of `tilekern trace --html` in a browser: what lights up under the mouse.
//!
//! Without a browser there is one test: ignored, or failing where `TILEKERN_REQUIRE_BROWSER` is set.

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;
use support::{switched_on, tilekern};
use tempfile::tempdir;

/// Names under which Chromium, or a browser of its kind, is installed.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

fn main() {
    let arguments = Arguments::from_args();
    let runs = |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success());
    let trials = match BROWSERS.into_iter().find(runs) {
        Some(browser) => vec![
            Trial::test("a value lights its bytes, its entry and its steps", || values(browser)),
            Trial::test("a step lights its bytes and its values", || steps(browser)),
            Trial::test("a byte lights its steps and its values", || bytes(browser)),
            Trial::test("a click keeps what is lit", || clicks(browser)),
            Trial::test("pages are drawn when they are opened", || pages(browser)),
            #[cfg(feature = "archives")]
            Trial::test("a step of a map tile lights its bytes", || map_tile(browser)),
        ],
        None => {
            let missing = || Err(Failed::from(format!("none of these is installed: {}", BROWSERS.join(", "))));
            vec![Trial::test("browser", missing).with_ignored_flag(!switched_on("TILEKERN_REQUIRE_BROWSER"))]
        }
    };
    libtest_mimic::run(&arguments, trials).exit()
}

/// What a script finds in the page of a column: the value that it returns.
fn found(browser: &str, column: &str, script: &str) -> Result<Value, Failed> {
    found_in(browser, "orders.parquet", support::parquet::orders, column, script)
}

/// The same of a part of a file that is made for it.
fn found_in(browser: &str, name: &str, make: fn(&Path), column: &str, script: &str) -> Result<Value, Failed> {
    let folder = tempdir()?;
    let (file, page) = (folder.path().join(name), folder.path().join("trace.html"));
    make(&file);
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let run = tilekern(["trace", &text(&file), column, "--html", &text(&page)]);
    if run.code != Some(0) {
        return Err(format!("{run:?}").into());
    }
    let helpers = r#"
        const mouse = (node, kind) => node.dispatchEvent(new MouseEvent(kind, { bubbles: true }));
        const lit = (nodes, kind) => nodes.flatMap((node, n) => node.classList.contains(kind) ? [n] : []);
        const texts = (nodes, kind) => nodes.filter(node => node.classList.contains(kind)).map(node => node.textContent);
    "#;
    let probe = format!(
        "<script>window.addEventListener('load', () => {{ {helpers} let told; \
         try {{ told = (() => {{ {script} }})(); }} catch (error) {{ told = String(error); }} \
         const out = document.createElement('output'); out.id = 'told'; out.textContent = JSON.stringify(told); \
         document.body.append(out); }});</script></body>"
    );
    let html = fs::read_to_string(&page)?;
    fs::write(&page, html.replace("</body>", &probe))?;
    let profile = format!("--user-data-dir={}", text(&folder.path().join("profile")));
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", &profile, "--dump-dom"])
        .arg(format!("file://{}", text(&page)))
        .output()?;
    let document = String::from_utf8(output.stdout)?;
    let told = document.split_once("<output id=\"told\">").and_then(|(_, rest)| rest.split_once("</output>"));
    let (told, _) = told.ok_or_else(|| format!("nothing told: {}", String::from_utf8_lossy(&output.stderr)))?;
    Ok(serde_json::from_str(&told.replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&"))?)
}

fn same(found: &Value, expected: Value) -> Result<(), Failed> {
    if *found == expected { Ok(()) } else { Err(format!("{found}, expected {expected}").into()) }
}

fn values(browser: &str) -> Result<(), Failed> {
    let script = r#"
        const before = document.querySelectorAll("[class*=lit-]").length;
        mouse(drawn[1].values[1], "mouseover");
        const during = {
            entry: lit(drawn[0].bytes[1], "lit-main"), run: lit(drawn[1].bytes[1], "lit-other").length > 0,
            value: lit(drawn[1].values, "lit-main"), of: texts(drawn[0].values, "lit-other"),
            steps: texts(drawn[1].steps, "lit-step").map(text => text.split(" ").slice(0, 2).join(" ")),
            colour: getComputedStyle(drawn[0].bytes[1][6]).backgroundColor !==
                getComputedStyle(drawn[0].bytes[1][0]).backgroundColor,
        };
        mouse(drawn[1].values[1], "mouseout");
        return { before, during, after: document.querySelectorAll("[class*=lit-]").length };
    "#;
    let told = found(browser, "country", script)?;
    same(&told["before"], 0.into())?;
    same(&told["after"], 0.into())?;
    // The second entry: its length and its two letters.
    same(&told["during"]["entry"], serde_json::json!([6, 7, 8, 9, 10, 11]))?;
    same(&told["during"]["run"], true.into())?;
    same(&told["during"]["value"], serde_json::json!([1]))?;
    same(&told["during"]["of"], serde_json::json!(["1  DE"]))?;
    same(&told["during"]["steps"], serde_json::json!(["run 0"]))?;
    same(&told["during"]["colour"], true.into())
}

fn steps(browser: &str) -> Result<(), Failed> {
    let script = r#"
        const step = data.pages[0].steps.findIndex(step => step.label === "stream 1");
        const [, start, end] = data.pages[0].steps[step].at;
        mouse(drawn[0].steps[step], "mouseover");
        return { bytes: lit(drawn[0].bytes[0], "lit-main").length === end - start, some: end > start,
            all: lit(drawn[0].values, "lit-other").length === data.pages[0].values.length, step: lit(drawn[0].steps, "lit-main").length };
    "#;
    let told = found(browser, "weight", script)?;
    // Each value has a byte in each stream.
    same(&told, serde_json::json!({"bytes": true, "some": true, "all": true, "step": 1}))
}

fn bytes(browser: &str) -> Result<(), Failed> {
    let script = r#"
        const at = data.pages[1].values[0].at[1][2];
        mouse(drawn[1].bytes[1][at], "mouseover");
        return { steps: texts(drawn[1].steps, "lit-step").length, byte: lit(drawn[1].bytes[1], "lit-main"), at,
            values: lit(drawn[1].values, "lit-other").length > 0 };
    "#;
    let told = found(browser, "country", script)?;
    same(&told["steps"], 1.into())?;
    same(&told["byte"], serde_json::json!([told["at"]]))?;
    same(&told["values"], true.into())
}

fn clicks(browser: &str) -> Result<(), Failed> {
    let script = r#"
        const count = () => document.querySelectorAll("[class*=lit-]").length;
        const value = drawn[0].values[0];
        mouse(value, "mouseover"); mouse(value, "click"); mouse(value, "mouseout");
        const kept = [count() > 0, document.querySelectorAll(".kept").length];
        mouse(drawn[0].values[1], "mouseover");
        const still = lit(drawn[0].values, "lit-main");
        mouse(value, "click"); mouse(value, "mouseout");
        return { kept, still, after: [count(), document.querySelectorAll(".kept").length] };
    "#;
    let told = found(browser, "weight", script)?;
    same(&told, serde_json::json!({"kept": [true, 1], "still": [0], "after": [0, 0]}))
}

fn pages(browser: &str) -> Result<(), Failed> {
    let script = r#"
        const all = [...document.querySelectorAll("details")];
        const open = all.filter(one => one.open).length;
        return { pages: all.length, open, drawn: drawn.filter(Boolean).length, title: document.title.endsWith("country"),
            wide: document.documentElement.scrollWidth <= window.innerWidth,
            how: document.getElementById("how").textContent.startsWith("Hover over a value: ") };
    "#;
    let told = found(browser, "country", script)?;
    same(&told, serde_json::json!({"pages": 5, "open": 3, "drawn": 3, "title": true, "wide": true, "how": true}))
}

#[cfg(feature = "archives")]
fn map_tile(browser: &str) -> Result<(), Failed> {
    let script = r#"
        const number = data.pages.findIndex(page => page.steps.some(step => step.label.includes("column name")));
        const page = open(number), step = data.pages[number].steps.findIndex(step => step.label.includes("column name"));
        const [, start, end] = data.pages[number].steps[step].at;
        main.append(page.parts);
        const detail = page.steps[step].querySelector("div"), colour = node => getComputedStyle(node).color;
        const plain = colour(detail) !== colour(page.steps[step]);
        mouse(page.steps[step], "mouseover");
        const inked = colour(detail) === colour(page.steps[step]);
        const how = document.getElementById("how").textContent;
        return { how: how.startsWith("Hover over a step: ") && !how.includes("value"), plain, inked, bytes: lit(page.bytes[0], "lit-main").length === end - start, long: end - start,
            step: lit(page.steps, "lit-main").length, parts: page.parts.children.length };
    "#;
    let make = |path: &Path| fs::write(path, support::mlt::tile()).expect("written");
    let told = found_in(browser, "tile.mlt", make, "places.rank", script)?;
    // A length and four letters; there are steps and bytes, and no values beside them. What is lit is readable.
    same(
        &told,
        serde_json::json!({"how": true, "plain": true, "inked": true, "bytes": true, "long": 5, "step": 1, "parts": 2}),
    )
}
