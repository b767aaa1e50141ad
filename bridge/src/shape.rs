//! What a compiled grammar is like before it takes anything.

use std::collections::{HashMap, HashSet};

use llguidance::earley::{CGrammar, CSymIdx};

pub struct Shape {
    /// Symbols, and the places in rules where they stand.
    pub parts: usize,
    /// A symbol that may be made of itself and nothing else, as `a` in `a: b*`, `b: a?` or the
    /// repetition in `(b*)*`: any text has endlessly many readings. What is followed of them grows
    /// with each token, and the work with its square.
    pub endless: Option<String>,
}

impl Shape {
    pub fn of(grammar: &CGrammar) -> Shape {
        let mut parts = 0;
        let mut below = HashMap::new();
        let mut open = vec![grammar.start()];
        while let Some(symbol) = open.pop() {
            if below.contains_key(&symbol) {
                continue;
            }
            for rule in grammar.rules_of(symbol) {
                let all = grammar.rule_rhs(*rule).0;
                parts += all.len();
                open.extend_from_slice(all);
            }
            below.insert(symbol, alone(grammar, symbol));
        }
        parts += below.len();
        let endless = in_circle(below).map(|symbol| grammar.sym_name(symbol).to_string());
        Shape { parts, endless }
    }
}

/// What all of the symbol may be made of, the rest of a rule left empty.
fn alone(grammar: &CGrammar, symbol: CSymIdx) -> HashSet<CSymIdx> {
    let is_filled = |part: &&CSymIdx| !grammar.sym_data(**part).is_nullable;
    let mut parts = HashSet::new();
    for rule in grammar.rules_of(symbol) {
        let all = grammar.rule_rhs(*rule).0;
        match all.iter().filter(is_filled).count() {
            0 => parts.extend(all),
            1 => parts.extend(all.iter().filter(is_filled)),
            _ => {}
        }
    }
    parts
}

/// One of those that lead back to themselves: what is left when all that lead nowhere are gone.
fn in_circle(mut below: HashMap<CSymIdx, HashSet<CSymIdx>>) -> Option<CSymIdx> {
    let mut above: HashMap<CSymIdx, Vec<CSymIdx>> = HashMap::new();
    for (symbol, parts) in &below {
        for part in parts {
            above.entry(*part).or_default().push(*symbol);
        }
    }
    let leads_nowhere = below.iter().filter(|(_, parts)| parts.is_empty());
    let mut ended: Vec<CSymIdx> = leads_nowhere.map(|(symbol, _)| *symbol).collect();
    while let Some(symbol) = ended.pop() {
        below.remove(&symbol);
        for upper in above.get(&symbol).into_iter().flatten() {
            let parts = below.get_mut(upper);
            if parts.is_some_and(|parts| parts.remove(&symbol) && parts.is_empty()) {
                ended.push(*upper);
            }
        }
    }
    below.into_keys().min_by_key(|symbol| symbol.as_index())
}
