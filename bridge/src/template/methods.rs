//! Python methods of strings, lists and dicts that templates call.

use minijinja::value::{from_args, Value, ValueKind};
use minijinja::{Error, ErrorKind, State};
use minijinja_contrib::pycompat::unknown_method_callback;

const WIDEST: usize = 4096;

pub fn call(
    state: &mut State,
    value: &Value,
    method: &str,
    args: &[Value],
) -> Result<Value, Error> {
    let ours = match value.kind() {
        ValueKind::String => string_method(value.as_str().unwrap_or_default(), method, args)?,
        ValueKind::Seq => sequence_method(value, method, args)?,
        ValueKind::Map if method == "copy" => Some(value.clone()),
        _ => None,
    };
    match ours {
        Some(result) => Ok(result),
        None => unknown_method_callback(state, value, method, args),
    }
}

fn string_method(text: &str, method: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    let result = match method {
        "removeprefix" => {
            let (part,): (&str,) = from_args(args)?;
            Value::from(text.strip_prefix(part).unwrap_or(text))
        }
        "removesuffix" => {
            let (part,): (&str,) = from_args(args)?;
            Value::from(text.strip_suffix(part).unwrap_or(text))
        }
        "zfill" => {
            let (width,): (usize,) = from_args(args)?;
            Value::from(zfill(text, width))
        }
        "ljust" | "rjust" | "center" => {
            let (width, fill): (usize, Option<char>) = from_args(args)?;
            Value::from(justify(text, method, width, fill.unwrap_or(' ')))
        }
        "partition" | "rpartition" => {
            let (separator,): (&str,) = from_args(args)?;
            partition(text, separator, method == "rpartition")
        }
        "rsplit" => rsplit(text, args)?,
        "index" => {
            let (part,): (&str,) = from_args(args)?;
            let at = text
                .find(part)
                .ok_or_else(|| Error::new(ErrorKind::InvalidOperation, "substring not found"))?;
            Value::from(text[..at].chars().count())
        }
        _ => return Ok(None),
    };
    Ok(Some(result))
}

fn sequence_method(value: &Value, method: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    match method {
        "copy" => Ok(Some(value.clone())),
        "index" => {
            let (wanted,): (&Value,) = from_args(args)?;
            match value.try_iter()?.position(|item| item == *wanted) {
                Some(at) => Ok(Some(Value::from(at))),
                None => Err(Error::new(
                    ErrorKind::InvalidOperation,
                    "value is not in the list",
                )),
            }
        }
        _ => Ok(None),
    }
}

fn zfill(text: &str, width: usize) -> String {
    let missing = width.min(WIDEST).saturating_sub(text.chars().count());
    let (sign, digits) = match text.chars().next() {
        Some('+' | '-') => text.split_at(1),
        _ => ("", text),
    };
    format!("{sign}{}{digits}", "0".repeat(missing))
}

fn justify(text: &str, method: &str, width: usize, fill: char) -> String {
    let missing = width.min(WIDEST).saturating_sub(text.chars().count());
    let left = match method {
        "ljust" => 0,
        "rjust" => missing,
        _ => missing / 2 + (missing & width & 1),
    };
    let pad = |count: usize| fill.to_string().repeat(count);
    format!("{}{text}{}", pad(left), pad(missing - left))
}

fn partition(text: &str, separator: &str, from_right: bool) -> Value {
    let found = if from_right {
        text.rsplit_once(separator)
    } else {
        text.split_once(separator)
    };
    match found {
        Some((before, after)) => strings(&[before, separator, after]),
        None if from_right => strings(&["", "", text]),
        None => strings(&[text, "", ""]),
    }
}

fn strings(parts: &[&str]) -> Value {
    parts.iter().map(|part| Value::from(*part)).collect()
}

fn rsplit(text: &str, args: &[Value]) -> Result<Value, Error> {
    let (separator, limit): (Option<&str>, Option<i64>) = from_args(args)?;
    let count = match limit {
        Some(limit) if limit >= 0 => limit as usize + 1,
        _ => usize::MAX,
    };
    let mut parts: Vec<&str> = Vec::new();
    match separator {
        Some(separator) => parts.extend(text.rsplitn(count, separator)),
        None => {
            let mut rest = text.trim_end();
            while !rest.is_empty() && parts.len() + 1 < count {
                match rest.rsplit_once(char::is_whitespace) {
                    Some((before, word)) => {
                        parts.push(word);
                        rest = before.trim_end();
                    }
                    None => break,
                }
            }
            if !rest.trim_start().is_empty() {
                parts.push(rest.trim_start());
            }
        }
    }
    parts.reverse();
    Ok(strings(&parts))
}
