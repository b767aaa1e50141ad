//! Text to token ids.

use std::sync::Arc;

use serde_json::Value;
use tokenizers::pipeline::{EncodeOptions, Override, PipelineToken, PipelineTokenizer};

use crate::ffi::Fallible;
use crate::vocabulary::Vocabulary;

/// Encode flags.
pub const ADD_SPECIAL: u32 = 1;
pub const SPECIAL_AS_TEXT: u32 = 2;

/// A loaded `tokenizer.json`. Shared by threads.
pub struct Tokenizer {
    pipeline: PipelineTokenizer,
    vocabulary: Vocabulary,
}

impl Tokenizer {
    pub fn new(json: &str) -> Fallible<Arc<Tokenizer>> {
        let mut root: Value = serde_json::from_str(json)
            .map_err(|error| format!("tokenizer.json is not valid JSON: {error}"))?;
        let vocabulary = Vocabulary::new(&root)?;
        tokenizers::canonicalize_value(&mut root)?;
        let canonical = serde_json::to_string(&root)?;
        let pipeline = tokenizers::from_json(&canonical)?;
        Ok(Arc::new(Tokenizer {
            pipeline,
            vocabulary,
        }))
    }

    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    pub fn encode(&self, text: &str, flags: u32) -> Fallible<Vec<u32>> {
        let options = EncodeOptions {
            add_special_tokens: flags & ADD_SPECIAL != 0,
            encode_special_tokens: flags & SPECIAL_AS_TEXT != 0,
            padding: Override::Off,
            truncation: Override::Off,
        };
        let mut tokens: Vec<PipelineToken> = Vec::with_capacity(text.len() / 4);
        self.pipeline.encode_into(text, &options, &mut tokens)?;
        Ok(PipelineToken::cast_slice(&tokens).to_vec())
    }
}
