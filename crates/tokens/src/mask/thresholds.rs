//! The numbers that decide how the legal tokens of a position are found.

/// When the mask search knows tokens by their characters, and when it reads them from the trie.
///
/// Every value of every field finds the same tokens; only the time differs. Each default is the
/// value that was fastest for the vocabularies of models, of 50,000 to 200,000 tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// All tokens are read if the first bytes with a transition begin at most this many nodes of
    /// the trie.
    pub(crate) few_nodes: usize,
    /// Tokens are read in a state whose legal characters have less than 1/`broad` of the weight of
    /// all characters.
    pub(crate) broad: usize,
    /// A state is read as exceptions of a slice if at most 1/`max_except` of the weight of all
    /// characters leads elsewhere than in the slice.
    pub(crate) max_except: usize,
    /// If at most this many first bytes lead to a position, the search tries it as exceptions of a
    /// known slice before it looks for a new slice. A known step is used for a state with at most
    /// this many other live characters.
    pub(crate) few_characters: usize,
    /// Steps are followed at once if at least this many are known.
    pub(crate) worth_at_once: usize,
    /// A position is near another one only if more nodes of the trie begin with the bytes that lead
    /// there.
    pub(crate) near_few_nodes: usize,
    /// A position is near another one only if at most this many nodes of the trie are read for the
    /// difference.
    pub(crate) near_max_nodes: usize,
    /// The tokens below a node whose bytes do not leave a state are taken together if there are at
    /// least this many.
    pub(crate) min_subtree: usize,
    /// The vocabulary shares the token set of at most this many slices among positions.
    pub(crate) max_shared: usize,
    /// A constraint caches at most this many steps: about a quarter of a megabyte.
    pub(crate) max_steps: usize,
}

impl Thresholds {
    /// The default.
    pub(crate) const USUAL: Self = Self {
        few_nodes: 768,
        broad: 8,
        max_except: 3,
        few_characters: 4,
        worth_at_once: 4,
        near_few_nodes: 512,
        near_max_nodes: 128,
        min_subtree: 0,
        max_shared: usize::MAX,
        max_steps: 1024,
    };

    /// The thresholds with another value of the field `name`.
    ///
    /// # Panics
    /// If no field has this name.
    #[must_use]
    pub fn with(mut self, name: &str, value: usize) -> Self {
        let field = self.fields().into_iter().find(|(field, _)| *field == name);
        *field.unwrap_or_else(|| panic!("no threshold has the name {name}")).1 = value;
        self
    }

    /// Every field, with its name.
    pub fn fields(&mut self) -> [(&'static str, &mut usize); 10] {
        macro_rules! named {
            ($thresholds:expr, $($field:ident),*) => {{
                let Self { $($field),* } = $thresholds;
                [$((stringify!($field), $field)),*]
            }};
        }
        named!(
            self,
            few_nodes,
            broad,
            max_except,
            few_characters,
            worth_at_once,
            near_few_nodes,
            near_max_nodes,
            min_subtree,
            max_shared,
            max_steps
        )
    }
}

impl Default for Thresholds {
    fn default() -> Self {
        Self::USUAL
    }
}
