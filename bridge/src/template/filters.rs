//! Filters, tests and functions that differ from minijinja's own.

use minijinja::value::{from_args, Kwargs, Rest, Value, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, ErrorKind, State};

use crate::python::{self, Dumps};

pub fn install(environment: &mut Environment<'static>) {
    environment.add_filter("tojson", tojson);
    environment.add_filter("string", |value: Value| python::to_str(&value));
    environment.add_filter("indent", indent);
    environment.add_filter("default", default);
    environment.add_filter("d", default);
    environment.add_filter("wordcount", minijinja_contrib::filters::wordcount);
    environment.add_test("iterable", is_iterable);
    environment.add_test("sequence", is_sequence);
    environment.add_function("dict", dict);
}

fn tojson(state: &mut State, args: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let args = args.into_values();
    type Parsed = (Value, Option<bool>, Option<Value>, Option<Value>, Kwargs);
    let (value, ascii, indent, separators, kwargs): Parsed = from_args(&args)?;
    let ascii = first(ascii, &kwargs, "ensure_ascii")?.unwrap_or(false);
    let indent = indent_text(first(indent, &kwargs, "indent")?)?;
    let separators = first(separators, &kwargs, "separators")?;
    let sort_keys = first(None, &kwargs, "sort_keys")?.unwrap_or(false);
    kwargs.assert_all_used()?;
    let (item_separator, key_separator) = match separators.filter(|pair| !pair.is_none()) {
        Some(pair) => (
            python::to_str(&pair.get_item_by_index(0)?),
            python::to_str(&pair.get_item_by_index(1)?),
        ),
        None if indent.is_some() => (",".to_string(), ": ".to_string()),
        None => (", ".to_string(), ": ".to_string()),
    };
    let dumps = Dumps {
        ensure_ascii: ascii,
        indent,
        item_separator,
        key_separator,
        sort_keys,
    };
    let text = dumps.write(&value)?;
    state.consume_fuel((text.len() / 64) as u64)?;
    Ok(Value::from(text))
}

/// An argument given by place, else by name.
fn first<T>(place: Option<T>, kwargs: &Kwargs, name: &str) -> Result<Option<T>, Error>
where
    T: for<'a> minijinja::value::ArgType<'a, Output = T>,
{
    match place {
        Some(value) => Ok(Some(value)),
        None if kwargs.has(name) => Ok(Some(kwargs.get(name)?)),
        None => Ok(None),
    }
}

fn indent_text(indent: Option<Value>) -> Result<Option<String>, Error> {
    const WIDEST: usize = 64;
    match indent {
        None => Ok(None),
        Some(value) if value.is_none() => Ok(None),
        Some(value) => match value.as_str() {
            Some(text) => Ok(Some(text.to_string())),
            None => Ok(Some(" ".repeat(usize::try_from(value)?.min(WIDEST)))),
        },
    }
}

fn indent(state: &mut State, args: Rest<ValueOrKwargs>) -> Result<String, Error> {
    let args = args.into_values();
    type Parsed = (Value, Option<Value>, Option<bool>, Option<bool>, Kwargs);
    let (value, width, first_line, blank, kwargs): Parsed = from_args(&args)?;
    let width = first(width, &kwargs, "width")?;
    let first_line = first(first_line, &kwargs, "first")?.unwrap_or(false);
    let blank = first(blank, &kwargs, "blank")?.unwrap_or(false);
    kwargs.assert_all_used()?;
    let margin = match width {
        None => "    ".to_string(),
        some => indent_text(some)?.unwrap_or_default(),
    };
    let text = python::to_str(&value);
    let lines: Vec<&str> = text.split('\n').collect();
    state.consume_fuel((lines.len() * (margin.len() + 1) / 64) as u64)?;
    let mut out = String::new();
    for (index, line) in lines.iter().enumerate() {
        if index > 0 {
            out.push('\n');
        }
        let wanted = if index == 0 {
            first_line
        } else {
            blank || !line.is_empty()
        };
        if wanted {
            out.push_str(&margin);
        }
        out.push_str(line);
    }
    Ok(out)
}

fn default(
    value: Value,
    other: Option<Value>,
    boolean: Option<bool>,
    kwargs: Kwargs,
) -> Result<Value, Error> {
    let other = first(other, &kwargs, "default_value")?.unwrap_or_else(|| Value::from(""));
    let boolean = first(boolean, &kwargs, "boolean")?.unwrap_or(false);
    kwargs.assert_all_used()?;
    if value.is_undefined() || (boolean && !value.is_true()) {
        return Ok(other);
    }
    Ok(value)
}

fn is_iterable(value: &Value) -> bool {
    !value.is_none() && value.try_iter().is_ok()
}

fn is_sequence(value: &Value) -> bool {
    matches!(
        value.kind(),
        ValueKind::Seq | ValueKind::Map | ValueKind::String | ValueKind::Undefined
    )
}

fn dict(value: Option<Value>, kwargs: Kwargs) -> Result<Value, Error> {
    let mut entries: Vec<(Value, Value)> = Vec::new();
    if let Some(value) = value {
        for item in value.try_iter()? {
            if value.kind() == ValueKind::Map {
                let entry = value.get_item(&item)?;
                entries.push((item, entry));
            } else if item.len() == Some(2) {
                entries.push((item.get_item_by_index(0)?, item.get_item_by_index(1)?));
            } else {
                return Err(Error::new(
                    ErrorKind::InvalidOperation,
                    "dict() needs pairs",
                ));
            }
        }
    }
    for name in kwargs.args() {
        entries.push((Value::from(name), kwargs.peek(name)?));
    }
    Ok(Value::from_pairs(entries))
}
