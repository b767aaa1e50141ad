//! Lists that templates change in place: `append` and its kin, as Python has them.

use std::sync::{Arc, Mutex, MutexGuard};

use minijinja::value::{from_args, Enumerator, Object, ObjectRepr, Value, ValueKind};
use minijinja::{Error, ErrorKind, State};

/// The function that makes one; a template cannot write this name by accident.
pub const MAKER: &str = "__list";

/// Methods that change a list. A template without them keeps the engine's own lists.
const CHANGING: [&str; 7] = [
    ".append(",
    ".extend(",
    ".insert(",
    ".pop(",
    ".remove(",
    ".clear(",
    ".reverse(",
];
const DEEPEST: usize = 64;
const MOST_ITEMS: usize = 1 << 20;

/// Shared by every name that it is given.
#[derive(Debug, Default)]
struct List {
    items: Mutex<Vec<Value>>,
}

impl Object for List {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.lock().get(key.as_usize()?).cloned()
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Seq(self.lock().len())
    }

    fn call_method(
        self: &Arc<Self>,
        state: &mut State<'_, '_>,
        method: &str,
        args: &[Value],
    ) -> Result<Value, Error> {
        state.consume_fuel(1)?;
        match method {
            "append" => {
                let (item,): (&Value,) = from_args(args)?;
                self.insert(state, usize::MAX, item)?;
            }
            "extend" => {
                let (more,): (&Value,) = from_args(args)?;
                let items: Vec<Value> = more.try_iter()?.collect();
                for item in &items {
                    self.insert(state, usize::MAX, item)?;
                }
            }
            "insert" => {
                let (at, item): (i64, &Value) = from_args(args)?;
                let at = place(at, self.lock().len());
                self.insert(state, at, item)?;
            }
            "pop" => {
                let (at,): (Option<i64>,) = from_args(args)?;
                return self.pop(at.unwrap_or(-1));
            }
            "remove" => {
                let (wanted,): (&Value,) = from_args(args)?;
                let mut items = self.lock();
                let found = items.iter().position(|item| item == wanted);
                let at = found.ok_or_else(|| refused("value is not in the list"))?;
                items.remove(at);
            }
            "clear" => {
                let () = from_args(args)?;
                self.lock().clear();
            }
            "reverse" => {
                let () = from_args(args)?;
                self.lock().reverse();
            }
            "copy" => {
                let () = from_args(args)?;
                return Ok(list(self.lock().clone()));
            }
            _ => return Err(Error::from(ErrorKind::UnknownMethod)),
        }
        Ok(Value::from(()))
    }
}

impl List {
    fn lock(&self) -> MutexGuard<'_, Vec<Value>> {
        self.items
            .lock()
            .unwrap_or_else(|broken| broken.into_inner())
    }

    fn insert(&self, state: &mut State<'_, '_>, at: usize, item: &Value) -> Result<(), Error> {
        let item = frozen(state, item, 0)?;
        let mut items = self.lock();
        if items.len() >= MOST_ITEMS {
            return Err(refused("a list has too many items"));
        }
        let at = at.min(items.len());
        items.insert(at, item);
        Ok(())
    }

    fn pop(&self, at: i64) -> Result<Value, Error> {
        let mut items = self.lock();
        let from_end = at.checked_add(items.len() as i64).unwrap_or(-1);
        let index = usize::try_from(if at < 0 { from_end } else { at }).unwrap_or(usize::MAX);
        if index >= items.len() {
            return Err(refused("there is no such item to pop from the list"));
        }
        Ok(items.remove(index))
    }
}

fn refused(message: &'static str) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}

/// Where Python inserts: places from the end are negative, those beyond either end are that end.
fn place(at: i64, length: usize) -> usize {
    let length = length as i64;
    let from_start = if at < 0 {
        at.saturating_add(length)
    } else {
        at
    };
    from_start.clamp(0, length) as usize
}

/// What goes into a list is a copy that nothing can change, so that no list comes to contain itself.
fn frozen(state: &mut State<'_, '_>, value: &Value, depth: usize) -> Result<Value, Error> {
    state.consume_fuel(1)?;
    if depth > DEEPEST {
        return Err(refused("a list goes too deep"));
    }
    match value.kind() {
        ValueKind::Seq => {
            let items: Vec<Value> = value.try_iter()?.collect();
            let copies: Result<Vec<Value>, Error> = items
                .iter()
                .map(|item| frozen(state, item, depth + 1))
                .collect();
            copies.map(Value::from)
        }
        ValueKind::Map => {
            let mut pairs = Vec::new();
            for key in value.try_iter()? {
                let item = frozen(state, &value.get_item(&key)?, depth + 1)?;
                pairs.push((key, item));
            }
            Ok(Value::from_pairs(pairs))
        }
        _ => Ok(value.clone()),
    }
}

fn list(items: Vec<Value>) -> Value {
    Value::from_object(List {
        items: Mutex::new(items),
    })
}

/// A list that can be changed, with the items of another.
pub fn make(items: Value) -> Result<Value, Error> {
    Ok(list(items.try_iter()?.collect()))
}

/// The source with each list that it writes (`[…]`, not a subscript) made by `MAKER`, where it
/// changes lists at all.
pub fn prepare(source: String) -> String {
    if !CHANGING.iter().any(|method| source.contains(method)) {
        return source;
    }
    let mut out = String::with_capacity(source.len() + 64);
    let mut rest = source.as_str();
    while let Some(start) = next_tag(rest) {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        if rest.starts_with("{#") {
            let end = rest.find("#}").map_or(rest.len(), |at| at + 2);
            out.push_str(&rest[..end]);
            rest = &rest[end..];
        } else {
            rest = wrap_tag(rest, &mut out);
        }
    }
    out + rest
}

fn next_tag(text: &str) -> Option<usize> {
    ["{{", "{%", "{#"]
        .iter()
        .filter_map(|tag| text.find(tag))
        .min()
}

/// Copies a tag, to its end; gives what follows it.
fn wrap_tag<'a>(text: &'a str, out: &mut String) -> &'a str {
    let close = if text.starts_with("{{") { "}}" } else { "%}" };
    out.push_str(&text[..2]);
    let mut brackets: Vec<(char, bool)> = Vec::new(); // and whether it is a list's
    let mut before = ' '; // the last character that is no space
    let mut word = String::new(); // the word that ends there
    let mut at = 2;
    while let Some(c) = text[at..].chars().next() {
        if brackets.is_empty() && text[at..].starts_with(close) {
            out.push_str(close);
            return &text[at + 2..];
        }
        if c == '"' || c == '\'' {
            let length = quoted_length(&text[at..], c);
            out.push_str(&text[at..at + length]);
            at += length;
            before = c;
            continue;
        }
        let is_list = c == '[' && begins_value(before, &word);
        match c {
            '[' | '(' | '{' => brackets.push((c, is_list)),
            _ => {}
        }
        if is_list {
            out.push_str(MAKER);
            out.push('(');
        }
        out.push(c);
        if matches!(c, ']' | ')' | '}') && brackets.pop().is_some_and(|(_, is_list)| is_list) {
            out.push(')');
        }
        if is_word(c) {
            if !is_word(text[..at].chars().next_back().unwrap_or(' ')) {
                word.clear();
            }
            word.push(c);
        }
        if !c.is_whitespace() {
            before = c;
        }
        at += c.len_utf8();
    }
    ""
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether a bracket behind this is a list, and no subscript.
fn begins_value(before: char, word: &str) -> bool {
    if is_word(before) {
        return matches!(
            word,
            "in" | "if" | "else" | "elif" | "and" | "or" | "not" | "is"
        );
    }
    !matches!(before, ')' | ']' | '}' | '"' | '\'')
}

fn quoted_length(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if !is_escaped && c == quote {
            return at + c.len_utf8();
        }
        is_escaped = !is_escaped && c == '\\';
    }
    text.len()
}
