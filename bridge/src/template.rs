//! Chat templates: Jinja as `transformers` runs it.

mod filters;
mod lists;
mod methods;

use std::fmt;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value;
use minijinja::{Environment, Error, ErrorKind, Output, State};

use crate::ffi::{Failure, Fallible, FAILED, RAISED};
use crate::python;

const NAME: &str = "chat_template";
/// Instructions a render may take; the longest real contexts need a fifth of it.
const FUEL: u64 = 5_000_000;

/// A compiled template. Shared by threads.
pub struct Template {
    environment: Environment<'static>,
}

/// The time that `strftime_now` shows.
#[derive(Clone, Copy)]
pub struct LocalTime {
    pub unix_seconds: i64,
    pub utc_offset_seconds: i32,
}

/// A message the template gave to `raise_exception`.
#[derive(Debug)]
struct Raised(String);

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Raised {}

impl Template {
    pub fn new(source: &str) -> Fallible<Template> {
        let mut environment = Environment::new();
        environment.set_syntax(
            SyntaxConfig::builder()
                .trim_blocks(true)
                .lstrip_blocks(true)
                .build()?,
        );
        environment.set_debug(true);
        environment.set_fuel(Some(FUEL));
        environment.set_recursion_limit(200);
        environment.set_formatter(write_value);
        environment.set_unknown_method_callback(methods::call);
        filters::install(&mut environment);
        environment.add_function("raise_exception", raise_exception);
        environment.add_function(lists::MAKER, lists::make);
        environment
            .add_template_owned(NAME, lists::prepare(prepare(source)))
            .map_err(|error| describe(&error))?;
        Ok(Template { environment })
    }

    /// Renders a context given as a JSON object.
    pub fn render(&self, context: &str, time: LocalTime) -> Fallible<String> {
        let context: serde_json::Value = serde_json::from_str(context)
            .map_err(|error| format!("the template's context is not valid JSON: {error}"))?;
        let serde_json::Value::Object(map) = &context else {
            return Err("the template's context is not a JSON object".into());
        };
        let clock = Value::from_function(move |format: String| strftime(time, &format));
        let entries = map
            .iter()
            .map(|(key, value)| (key.as_str(), from_json(value)))
            .chain(std::iter::once(("strftime_now", clock)));
        let context = Value::from_pairs(entries);
        let template = self.environment.get_template(NAME)?;
        template.render(context).map_err(|error| describe(&error))
    }
}

/// Same line ends everywhere, and the training marker `generation` made a plain block.
fn prepare(source: &str) -> String {
    let mut rest = source.replace("\r\n", "\n").replace('\r', "\n");
    let mut out = String::with_capacity(rest.len());
    while let Some(start) = rest.find("{%") {
        let Some(length) = rest[start..].find("%}") else {
            break;
        };
        let inner = &rest[start + 2..start + length];
        let words = inner.trim_matches(|c: char| c.is_whitespace() || c == '-' || c == '+');
        let replaced = match words {
            "generation" => inner.replacen("generation", "if true", 1),
            "endgeneration" => inner.replacen("endgeneration", "endif", 1),
            _ => inner.to_string(),
        };
        out.push_str(&rest[..start + 2]);
        out.push_str(&replaced);
        out.push_str("%}");
        rest = rest.split_off(start + length + 2);
    }
    out + &rest
}

fn raise_exception(message: Value) -> Result<Value, Error> {
    let text = python::to_str(&message);
    Err(Error::new(ErrorKind::InvalidOperation, text.clone()).with_source(Raised(text)))
}

fn write_value(out: &mut Output, state: &mut State, value: &Value) -> Result<(), Error> {
    let text;
    let shown = match value.as_str() {
        Some(shown) => shown,
        None => {
            text = python::to_str(value);
            &text
        }
    };
    state.consume_fuel((shown.len() / 64) as u64)?;
    out.write_str(shown)?;
    Ok(())
}

fn strftime(time: LocalTime, format: &str) -> Result<String, Error> {
    let invalid = |error: jiff::Error| Error::new(ErrorKind::InvalidOperation, error.to_string());
    let zone = jiff::tz::Offset::from_seconds(time.utc_offset_seconds)
        .map_err(invalid)?
        .to_time_zone();
    let now = jiff::Timestamp::from_second(time.unix_seconds)
        .map_err(invalid)?
        .to_zoned(zone);
    jiff::fmt::strtime::format(format, &now).map_err(invalid)
}

fn describe(error: &Error) -> Failure {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(inner) = source {
        if let Some(raised) = inner.downcast_ref::<Raised>() {
            return Failure {
                code: RAISED,
                message: raised.0.clone(),
            };
        }
        source = inner.source();
    }
    let mut message = error.kind().to_string();
    if let Some(detail) = error.detail() {
        message = format!("{message}: {detail}");
    }
    if let Some(line) = error.line() {
        message = format!("{message} (line {line} of the template)");
    }
    Failure {
        code: FAILED,
        message,
    }
}

fn from_json(value: &serde_json::Value) -> Value {
    match value {
        serde_json::Value::Null => Value::from(()),
        serde_json::Value::Bool(flag) => Value::from(*flag),
        serde_json::Value::Number(number) => from_number(number),
        serde_json::Value::String(text) => Value::from(text.as_str()),
        serde_json::Value::Array(items) => items.iter().map(from_json).collect(),
        serde_json::Value::Object(map) => Value::from_pairs(
            map.iter()
                .map(|(key, item)| (key.as_str(), from_json(item))),
        ),
    }
}

fn from_number(number: &serde_json::Number) -> Value {
    if let Some(small) = number.as_i64() {
        return Value::from(small);
    }
    let spelled = number.to_string();
    if let Ok(large) = spelled.parse::<i128>() {
        return Value::from(large);
    }
    if let Ok(large) = spelled.parse::<u128>() {
        return Value::from(large);
    }
    Value::from(spelled.parse::<f64>().unwrap_or(f64::NAN))
}
