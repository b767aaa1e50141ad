//! The table of tokens of a `tokenizer.json`: strings, raw bytes, flags.

use std::collections::HashMap;

use serde_json::Value;

use crate::ffi::Fallible;

pub const PRESENT: u32 = 1;
pub const SPECIAL: u32 = 2;
pub const ADDED: u32 = 4;

#[derive(Default, Clone)]
pub struct Token {
    pub text: String,
    pub bytes: Vec<u8>,
    pub flags: u32,
}

/// How a token's string becomes bytes.
#[derive(Default)]
struct Spelling {
    byte_level: bool,
    byte_fallback: bool,
    replacements: Vec<(String, String)>,
    strips_leading_space: bool,
}

/// Tokens by id, ids by string.
pub struct Vocabulary {
    tokens: Vec<Token>,
    ids: HashMap<String, u32>,
    strips_leading_space: bool,
}

impl Vocabulary {
    /// Reads the vocabulary, the added tokens and the decoder of a parsed `tokenizer.json`.
    pub fn new(root: &Value) -> Fallible<Vocabulary> {
        let mut spelling = Spelling::default();
        read_decoder(root.get("decoder").unwrap_or(&Value::Null), &mut spelling)?;
        let mut vocabulary = Vocabulary {
            tokens: Vec::new(),
            ids: HashMap::new(),
            strips_leading_space: spelling.strips_leading_space,
        };
        vocabulary.read_model(root)?;
        vocabulary.read_added(root)?;
        let map = char_bytes();
        for token in &mut vocabulary.tokens {
            token.bytes = spelling.bytes(&token.text, &map);
        }
        Ok(vocabulary)
    }

    pub fn size(&self) -> usize {
        self.tokens.len()
    }

    pub fn token(&self, id: u32) -> Option<&Token> {
        self.tokens
            .get(id as usize)
            .filter(|token| token.flags & PRESENT != 0)
    }

    pub fn id(&self, text: &str) -> Option<u32> {
        self.ids.get(text).copied()
    }

    pub fn strips_leading_space(&self) -> bool {
        self.strips_leading_space
    }

    fn read_model(&mut self, root: &Value) -> Fallible<()> {
        match &root["model"]["vocab"] {
            Value::Object(map) => {
                for (text, id) in map {
                    self.add(text, token_id(id)?, PRESENT)?;
                }
            }
            Value::Array(pieces) => {
                for (id, piece) in pieces.iter().enumerate() {
                    let text = piece[0].as_str().ok_or("a vocabulary piece has no text")?;
                    self.add(text, id as u32, PRESENT)?;
                }
            }
            _ => return Err("tokenizer.json has no model.vocab".into()),
        }
        Ok(())
    }

    fn read_added(&mut self, root: &Value) -> Fallible<()> {
        let Some(added) = root.get("added_tokens").and_then(Value::as_array) else {
            return Ok(());
        };
        for entry in added {
            let text = entry["content"]
                .as_str()
                .ok_or("an added token has no content")?;
            let mut flags = PRESENT | ADDED;
            if entry["special"].as_bool().unwrap_or(false) {
                flags |= SPECIAL;
            }
            self.add(text, token_id(&entry["id"])?, flags)?;
        }
        Ok(())
    }

    fn add(&mut self, text: &str, id: u32, flags: u32) -> Fallible<()> {
        const LIMIT: u32 = 1 << 24;
        if id >= LIMIT {
            return Err(format!("token id {id} is over the limit of {LIMIT}").into());
        }
        let index = id as usize;
        if index >= self.tokens.len() {
            self.tokens.resize(index + 1, Token::default());
        }
        let token = &mut self.tokens[index];
        token.text = text.to_string();
        token.flags |= flags;
        self.ids.insert(text.to_string(), id);
        Ok(())
    }
}

impl Spelling {
    fn bytes(&self, text: &str, map: &HashMap<char, u8>) -> Vec<u8> {
        if self.byte_level {
            let mapped: Option<Vec<u8>> = text.chars().map(|c| map.get(&c).copied()).collect();
            return mapped.unwrap_or_else(|| text.as_bytes().to_vec());
        }
        if self.byte_fallback {
            if let Some(byte) = fallback_byte(text) {
                return vec![byte];
            }
        }
        let mut spelled = text.to_string();
        for (from, to) in &self.replacements {
            spelled = spelled.replace(from, to);
        }
        spelled.into_bytes()
    }
}

fn token_id(value: &Value) -> Fallible<u32> {
    value
        .as_u64()
        .and_then(|id| u32::try_from(id).ok())
        .ok_or_else(|| format!("token id {value} is not an unsigned number").into())
}

/// `<0x0A>` is the byte 10.
fn fallback_byte(text: &str) -> Option<u8> {
    let digits = text.strip_prefix("<0x")?.strip_suffix('>')?;
    if digits.len() != 2 {
        return None;
    }
    u8::from_str_radix(digits, 16).ok()
}

/// The printable characters that byte-level vocabularies spell bytes with.
fn char_bytes() -> HashMap<char, u8> {
    let mut next = 256u32;
    (0..=255u8)
        .map(|byte| {
            let printable = matches!(byte, 33..=126 | 161..=172 | 174..=255);
            let code = if printable {
                u32::from(byte)
            } else {
                next += 1;
                next - 1
            };
            (char::from_u32(code).unwrap_or('\0'), byte)
        })
        .collect()
}

fn read_decoder(decoder: &Value, spelling: &mut Spelling) -> Fallible<()> {
    match decoder["type"].as_str() {
        None => Ok(()),
        Some("Sequence") => {
            let parts = decoder["decoders"].as_array();
            for part in parts.into_iter().flatten() {
                read_decoder(part, spelling)?;
            }
            Ok(())
        }
        Some("ByteLevel") => {
            spelling.byte_level = true;
            Ok(())
        }
        Some("ByteFallback") => {
            spelling.byte_fallback = true;
            Ok(())
        }
        Some("Fuse") => Ok(()),
        Some("Metaspace") => {
            let mark = decoder["replacement"].as_str().unwrap_or("▁");
            spelling.replacements.push((mark.to_string(), " ".into()));
            let never = decoder["prepend_scheme"].as_str() == Some("never")
                || decoder["add_prefix_space"].as_bool() == Some(false);
            spelling.strips_leading_space = !never;
            Ok(())
        }
        Some("Replace") => read_replace(decoder, spelling),
        Some("Strip") => read_strip(decoder, spelling),
        Some(other) => Err(format!("the tokenizer's decoder {other} is not supported").into()),
    }
}

fn read_replace(decoder: &Value, spelling: &mut Spelling) -> Fallible<()> {
    let from = decoder["pattern"]["String"].as_str();
    let to = decoder["content"].as_str();
    let (Some(from), Some(to)) = (from, to) else {
        return Err("the tokenizer's decoder Replace has a pattern that is not a string".into());
    };
    spelling.replacements.push((from.into(), to.into()));
    Ok(())
}

fn read_strip(decoder: &Value, spelling: &mut Spelling) -> Fallible<()> {
    let start = decoder["start"].as_u64().unwrap_or(0);
    let stop = decoder["stop"].as_u64().unwrap_or(0);
    if decoder["content"].as_str() != Some(" ") || start > 1 || stop != 0 {
        return Err("the tokenizer's decoder Strip does more than drop one leading space".into());
    }
    spelling.strips_leading_space |= start == 1;
    Ok(())
}
