//! Values spelled as Python spells them: str(), repr(), json.dumps().

use std::fmt::Write;

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind};

/// `str(value)`.
pub fn to_str(value: &Value) -> String {
    match value.kind() {
        ValueKind::String => value.as_str().unwrap_or_default().to_string(),
        ValueKind::Undefined => String::new(),
        _ => repr(value),
    }
}

/// `repr(value)`.
pub fn repr(value: &Value) -> String {
    let mut out = String::new();
    write_repr(&mut out, value);
    out
}

fn write_repr(out: &mut String, value: &Value) {
    match value.kind() {
        ValueKind::Undefined => out.push_str("Undefined"),
        ValueKind::String => write_quoted(out, value.as_str().unwrap_or_default()),
        ValueKind::Number => out.push_str(&number(value)),
        ValueKind::Seq => write_sequence(out, value),
        ValueKind::Map => {
            out.push('{');
            for (index, (key, item)) in pairs(value).enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                write_repr(out, &key);
                out.push_str(": ");
                write_repr(out, &item);
            }
            out.push('}');
        }
        _ => {
            let _ = write!(out, "{value}");
        }
    }
}

fn write_sequence(out: &mut String, value: &Value) {
    let (open, close) = if value.is_tuple() {
        ('(', ')')
    } else {
        ('[', ']')
    };
    out.push(open);
    for (index, item) in items(value).enumerate() {
        out.push_str(if index > 0 { ", " } else { "" });
        write_repr(out, &item);
    }
    if value.is_tuple() && value.len() == Some(1) {
        out.push(',');
    }
    out.push(close);
}

fn items(value: &Value) -> impl Iterator<Item = Value> {
    value.try_iter().into_iter().flatten()
}

fn pairs(value: &Value) -> impl Iterator<Item = (Value, Value)> + '_ {
    items(value).map(|key| {
        let item = value.get_item(&key).unwrap_or_default();
        (key, item)
    })
}

fn write_quoted(out: &mut String, text: &str) {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    out.push(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if c == quote => {
                out.push('\\');
                out.push(c);
            }
            _ if is_printable(c) => out.push(c),
            _ => write_escape(out, c),
        }
    }
    out.push(quote);
}

fn write_escape(out: &mut String, c: char) {
    let code = c as u32;
    let _ = match code {
        0..=0xff => write!(out, "\\x{code:02x}"),
        0x100..=0xffff => write!(out, "\\u{code:04x}"),
        _ => write!(out, "\\U{code:08x}"),
    };
}

/// Close to Python's str.isprintable: no controls, separators other than space, formats, private use.
fn is_printable(c: char) -> bool {
    !matches!(c as u32,
        0..=0x1f | 0x7f..=0xa0 | 0xad | 0x600..=0x605 | 0x61c | 0x6dd | 0x1680 | 0x180e
        | 0x2000..=0x200f | 0x2028..=0x202f | 0x205f..=0x206f | 0x3000 | 0xe000..=0xf8ff
        | 0xfeff | 0xfff0..=0xfffb | 0xe0000..=0x10ffff)
}

fn as_float(value: &Value) -> Option<f64> {
    if value.kind() != ValueKind::Number || value.is_integer() {
        return None;
    }
    f64::try_from(value.clone()).ok()
}

fn number(value: &Value) -> String {
    match as_float(value) {
        Some(float) => float_repr(float),
        None => value.to_string(),
    }
}

/// `repr(float)`: the shortest digits that read back, scientific below 1e-4 and from 1e16 on.
pub fn float_repr(float: f64) -> String {
    if float.is_nan() {
        return "nan".into();
    }
    if float.is_infinite() {
        return if float > 0.0 { "inf" } else { "-inf" }.into();
    }
    let magnitude = float.abs();
    if magnitude != 0.0 && !(1e-4..1e16).contains(&magnitude) {
        let spelled = format!("{float:e}");
        let (digits, exponent) = spelled.split_once('e').unwrap_or((&spelled, "0"));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    let spelled = format!("{float}");
    if spelled.contains('.') {
        spelled
    } else {
        spelled + ".0"
    }
}

/// The arguments of `json.dumps` that templates use.
pub struct Dumps {
    pub ensure_ascii: bool,
    pub indent: Option<String>,
    pub item_separator: String,
    pub key_separator: String,
    pub sort_keys: bool,
}

impl Dumps {
    pub fn write(&self, value: &Value) -> Result<String, Error> {
        let mut out = String::new();
        self.write_value(&mut out, value, 0)?;
        Ok(out)
    }

    fn write_value(&self, out: &mut String, value: &Value, depth: usize) -> Result<(), Error> {
        match value.kind() {
            ValueKind::None => out.push_str("null"),
            ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => out.push_str(&json_number(value)),
            ValueKind::String => self.write_string(out, value.as_str().unwrap_or_default()),
            ValueKind::Seq => self.write_array(out, value, depth)?,
            ValueKind::Map => self.write_object(out, value, depth)?,
            other => {
                return Err(Error::new(
                    ErrorKind::InvalidOperation,
                    format!("Object of type {other} is not JSON serializable"),
                ))
            }
        }
        Ok(())
    }

    fn write_array(&self, out: &mut String, value: &Value, depth: usize) -> Result<(), Error> {
        if value.len() == Some(0) {
            out.push_str("[]");
            return Ok(());
        }
        out.push('[');
        for (index, item) in items(value).enumerate() {
            self.begin_item(out, index, depth);
            self.write_value(out, &item, depth + 1)?;
        }
        self.end_items(out, depth);
        out.push(']');
        Ok(())
    }

    fn write_object(&self, out: &mut String, value: &Value, depth: usize) -> Result<(), Error> {
        let mut entries: Vec<(String, Value)> = pairs(value)
            .map(|(key, item)| (json_key(&key), item))
            .collect();
        if entries.is_empty() {
            out.push_str("{}");
            return Ok(());
        }
        if self.sort_keys {
            entries.sort_by(|a, b| a.0.cmp(&b.0));
        }
        out.push('{');
        for (index, (key, item)) in entries.iter().enumerate() {
            self.begin_item(out, index, depth);
            self.write_string(out, key);
            out.push_str(&self.key_separator);
            self.write_value(out, item, depth + 1)?;
        }
        self.end_items(out, depth);
        out.push('}');
        Ok(())
    }

    fn begin_item(&self, out: &mut String, index: usize, depth: usize) {
        if index > 0 {
            out.push_str(&self.item_separator);
        }
        if let Some(indent) = &self.indent {
            out.push('\n');
            out.push_str(&indent.repeat(depth + 1));
        }
    }

    fn end_items(&self, out: &mut String, depth: usize) {
        if let Some(indent) = &self.indent {
            out.push('\n');
            out.push_str(&indent.repeat(depth));
        }
    }

    fn write_string(&self, out: &mut String, text: &str) {
        out.push('"');
        for c in text.chars() {
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\u{8}' => out.push_str("\\b"),
                '\u{c}' => out.push_str("\\f"),
                _ if (c as u32) < 0x20 || (self.ensure_ascii && (c as u32) > 0x7e) => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        let _ = write!(out, "\\u{unit:04x}");
                    }
                }
                _ => out.push(c),
            }
        }
        out.push('"');
    }
}

fn json_number(value: &Value) -> String {
    match as_float(value) {
        Some(float) if float.is_nan() => "NaN".into(),
        Some(float) if float.is_infinite() => {
            if float > 0.0 { "Infinity" } else { "-Infinity" }.into()
        }
        _ => number(value),
    }
}

fn json_key(key: &Value) -> String {
    match key.kind() {
        ValueKind::Bool => if key.is_true() { "true" } else { "false" }.into(),
        ValueKind::None => "null".into(),
        ValueKind::Number => json_number(key),
        _ => to_str(key),
    }
}
