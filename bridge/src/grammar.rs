//! Token masks from JSON schemas, regular expressions and Lark grammars.

use std::sync::Arc;

use llguidance::api::{GrammarInit, TopLevelGrammar};
use llguidance::{Logger, Matcher, ParserFactory, TokenParser};
use serde_json::Value;
use toktrie::{InferenceCapabilities, TokEnv, TokRxInfo, TokTrie, TokenId, TokenizerEnv};

use crate::ffi::{Failure, Fallible, FAILED};
use crate::shape::Shape;
use crate::tokenizer::{Tokenizer, SPECIAL_AS_TEXT};
use crate::vocabulary::SPECIAL;

pub const JSON_SCHEMA: u32 = 0;
pub const REGEX: u32 = 1;
pub const LARK: u32 = 2;
pub const AMBIGUOUS_LARK: u32 = 3;

const MAX_GRAMMAR_BYTES: usize = 1 << 20;
/// Intersections of patterns cost exponential time while they compile.
const MAX_PATTERNS_IN_ALL_OF: usize = 8;

struct Environment {
    tokenizer: Arc<Tokenizer>,
    trie: TokTrie,
}

impl TokenizerEnv for Environment {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<TokenId> {
        self.trie.tokenize_with_greedy_fallback(bytes, |text| {
            self.tokenizer
                .encode(text, SPECIAL_AS_TEXT)
                .unwrap_or_else(|_| self.trie.greedy_tokenize(text.as_bytes()))
        })
    }
}

/// Compiles grammars for one vocabulary. Shared by threads.
pub struct GrammarCompiler {
    factory: ParserFactory,
    mask_words: usize,
    eos: Arc<[TokenId]>,
}

impl GrammarCompiler {
    pub fn new(
        tokenizer: Arc<Tokenizer>,
        logits: u32,
        eos: &[TokenId],
    ) -> Fallible<GrammarCompiler> {
        let vocabulary = tokenizer.vocabulary();
        let Some(&first) = eos.first() else {
            return Err("a grammar needs an end-of-text token".into());
        };
        if (logits as usize) < vocabulary.size() || eos.iter().any(|id| *id >= logits) {
            return Err(format!(
                "logits have {logits} entries, the vocabulary {}",
                vocabulary.size()
            )
            .into());
        }
        let words: Vec<Vec<u8>> = (0..logits)
            .map(|id| word(&tokenizer, id, eos.contains(&id)))
            .collect();
        let trie = TokTrie::from(&TokRxInfo::new(logits, first), &words).with_eos_tokens(eos);
        let environment: TokEnv = Arc::new(Environment { tokenizer, trie });
        let mut factory = ParserFactory::new_simple(&environment)?;
        factory.quiet();
        Ok(GrammarCompiler {
            factory,
            mask_words: (logits as usize).div_ceil(32),
            eos: eos.into(),
        })
    }

    pub fn compile(&self, kind: u32, source: &str) -> Fallible<GrammarMatcher> {
        if source.len() > MAX_GRAMMAR_BYTES {
            return Err(format!("the grammar is over {MAX_GRAMMAR_BYTES} bytes").into());
        }
        let grammar = match kind {
            JSON_SCHEMA => {
                let schema: Value = serde_json::from_str(source)
                    .map_err(|error| format!("the schema is not valid JSON: {error}"))?;
                check_patterns(&schema)?;
                TopLevelGrammar::from_json_schema(schema)
            }
            REGEX => TopLevelGrammar::from_regex(source),
            LARK | AMBIGUOUS_LARK => TopLevelGrammar::from_lark(source.to_string()),
            _ => return Err("unknown kind of grammar".into()),
        };
        let parser = self.parser(grammar, kind)?;
        let shape = Shape::of(parser.parser.grammar());
        if let Some(name) = shape.endless {
            return Err(format!("endless readings: {name}").into());
        }
        // Found by measuring: the lexer's expressions are there several times.
        let bytes = 5 * parser.parser.lexer_stats().num_bytes + 200 * shape.parts;
        let matcher = Matcher::new(Ok(parser));
        match matcher.get_error() {
            Some(error) => Err(error.into()),
            None => Ok(GrammarMatcher {
                matcher,
                mask_words: self.mask_words,
                eos: self.eos.clone(),
                ends: 0,
                bytes,
            }),
        }
    }

    /// With limits of what one place of an answer may leave open, and of what one mask may cost: a
    /// mask that meets them takes some tenths of a second.
    fn parser(&self, grammar: TopLevelGrammar, kind: u32) -> Fallible<TokenParser> {
        let mut limits = self.factory.limits().clone();
        limits.step_max_items = 50_000;
        limits.step_lexer_fuel = 4_000_000;
        // Of one reading each, so that what is within the bounds of schemas stays below; of many
        // readings the work is the square.
        limits.max_items_in_row = if kind == AMBIGUOUS_LARK { 2000 } else { 20_000 };
        Ok(self.factory.create_parser_from_init_ext(
            GrammarInit::Serialized(grammar),
            Logger::new(0, 0),
            InferenceCapabilities::default(),
            limits,
        )?)
    }
}

/// The bytes of a token as the trie wants them; special ones behind a marker.
fn word(tokenizer: &Tokenizer, id: TokenId, is_eos: bool) -> Vec<u8> {
    let Some(token) = tokenizer.vocabulary().token(id) else {
        return Vec::new();
    };
    let tag = token.text.len() > 2 && token.text.starts_with('<') && token.text.ends_with('>');
    let is_byte = token.bytes.len() == 1;
    let added = token.flags & crate::vocabulary::ADDED != 0;
    if is_eos || token.flags & SPECIAL != 0 || (added && tag && !is_byte) {
        let mut bytes = vec![TokTrie::SPECIAL_TOKEN_MARKER];
        bytes.extend_from_slice(token.text.as_bytes());
        return bytes;
    }
    token.bytes.clone()
}

fn check_patterns(schema: &Value) -> Fallible<()> {
    match schema {
        Value::Object(map) => {
            if let Some(Value::Array(parts)) = map.get("allOf") {
                let patterns = parts.iter().filter(|part| has_pattern(part)).count();
                if patterns > MAX_PATTERNS_IN_ALL_OF {
                    return Err(format!(
                        "allOf with {patterns} patterns: at most {MAX_PATTERNS_IN_ALL_OF} are allowed"
                    )
                    .into());
                }
            }
            map.values().try_for_each(check_patterns)
        }
        Value::Array(items) => items.iter().try_for_each(check_patterns),
        _ => Ok(()),
    }
}

fn has_pattern(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => map.contains_key("pattern") || map.values().any(has_pattern),
        Value::Array(items) => items.iter().any(has_pattern),
        _ => false,
    }
}

/// The first line of an error: what follows dumps the parser's state.
fn brief(error: impl std::fmt::Display) -> Failure {
    let text = error.to_string();
    Failure {
        code: FAILED,
        message: text.lines().next().unwrap_or_default().to_string(),
    }
}

/// One answer's place in a grammar. One thread at a time.
pub struct GrammarMatcher {
    matcher: Matcher,
    mask_words: usize,
    eos: Arc<[TokenId]>,
    /// End-of-text ids taken after the grammar was complete; the matcher does not know of them.
    ends: usize,
    /// What a matcher takes in memory at its beginning, about.
    bytes: usize,
}

impl GrammarMatcher {
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// What the last mask followed: parts of rules, over all the tokens that it looked at.
    pub fn followed(&self) -> usize {
        self.matcher
            .last_step_stats()
            .map_or(0, |stats| stats.all_items)
    }

    pub fn duplicate(&self) -> GrammarMatcher {
        GrammarMatcher {
            matcher: self.matcher.deep_clone(),
            mask_words: self.mask_words,
            eos: self.eos.clone(),
            ends: self.ends,
            bytes: self.bytes,
        }
    }

    /// Sets a bit for each id that may come next; only the end when the grammar is complete.
    pub fn mask(&mut self, out: &mut [u32]) -> Fallible<()> {
        if out.len() != self.mask_words {
            return Err(format!(
                "the mask has {} words, not the {} of the vocabulary",
                out.len(),
                self.mask_words
            )
            .into());
        }
        let mask = self.matcher.compute_mask_or_eos().map_err(brief)?;
        let words = mask.as_slice();
        out.fill(0);
        let shared = words.len().min(out.len());
        out[..shared].copy_from_slice(&words[..shared]);
        Ok(())
    }

    pub fn consume(&mut self, ids: &[TokenId]) -> Fallible<()> {
        for id in ids {
            let complete = self.matcher.is_stopped() && !self.matcher.is_error();
            if complete && self.eos.contains(id) {
                self.ends += 1;
            } else {
                self.matcher.consume_token(*id).map_err(brief)?;
            }
        }
        Ok(())
    }

    pub fn rollback(&mut self, count: usize) -> Fallible<()> {
        let ends = count.min(self.ends);
        self.matcher.rollback(count - ends).map_err(brief)?;
        self.ends -= ends;
        Ok(())
    }

    /// How many of `ids` the grammar would take; the place does not move.
    pub fn accepted(&mut self, ids: &[TokenId]) -> Fallible<usize> {
        self.matcher.validate_tokens(ids).map_err(brief)
    }

    pub fn may_end(&mut self) -> Fallible<bool> {
        Ok(self.matcher.is_accepting()?)
    }

    pub fn has_ended(&self) -> Result<bool, Failure> {
        Ok(self.matcher.is_stopped())
    }
}
