//! A user's mistakes: what is wrong, where, what is allowed, and the way out. All of them are reported at once.

use std::sync::Arc;

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode, SourceSpan};

/// One mistake in a scenario, at the key that a user would change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Dotted path of the key, such as `uplink.ratio`; empty for the file as a whole.
    pub path: String,
    /// What is wrong and what is allowed.
    pub message: String,
    /// What the underlined text is.
    pub label: String,
    /// How to put it right, if that is known.
    pub help: Option<String>,
    /// Whether the key itself is wrong, not its value.
    pub at_key: bool,
}

impl Mistake {
    /// A mistake in the value of a key.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into(), label: "here".to_owned(), help: None, at_key: false }
    }

    /// Says what the underlined text is.
    pub fn label(self, label: impl Into<String>) -> Self {
        Self { label: label.into(), ..self }
    }

    /// Says how to put it right.
    pub fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    /// Points at the key instead of its value.
    pub fn at_key(self) -> Self {
        Self { at_key: true, ..self }
    }
}

/// A mistake with the text that it points into.
#[derive(Debug, Clone)]
pub struct Located {
    mistake: Mistake,
    source: Option<(Arc<NamedSource<String>>, SourceSpan)>,
}

impl Located {
    /// A mistake that points at `span` of `source`, or at nothing where no text is to blame.
    pub fn new(mistake: Mistake, source: Option<(Arc<NamedSource<String>>, SourceSpan)>) -> Self {
        Self { mistake, source }
    }
}

impl std::fmt::Display for Located {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without a text to point into, the path is all that says where.
        match (&self.source, self.mistake.path.as_str()) {
            (Some(_), _) | (None, "") => write!(f, "{}", self.mistake.message),
            (None, path) => write!(f, "`{path}`: {}", self.mistake.message),
        }
    }
}

impl std::error::Error for Located {}

impl Diagnostic for Located {
    fn help<'a>(&'a self) -> Option<Box<dyn std::fmt::Display + 'a>> {
        self.mistake.help.as_ref().map(|help| Box::new(help) as Box<dyn std::fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.as_ref().map(|(source, _)| source.as_ref() as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let (_, span) = self.source.as_ref()?;
        let label = LabeledSpan::new_with_span(Some(self.mistake.label.clone()), *span);
        Some(Box::new(std::iter::once(label)))
    }
}

/// A scenario that cannot run, with every reason.
#[derive(Debug, Clone)]
pub struct Refusal {
    /// Name of the scenario file as the user gave it; empty where the command line itself is wrong.
    pub scenario: String,
    /// Every mistake that was found, in the order of checking; never empty.
    pub mistakes: Vec<Located>,
}

impl Refusal {
    /// The only mistake of a command that concerns no scenario and no text that could be shown: it needs no heading.
    fn only(&self) -> Option<&Located> {
        match self.mistakes.as_slice() {
            [only] if self.scenario.is_empty() && only.source.is_none() => Some(only),
            _ => None,
        }
    }

    /// Every reason on a line of its own, with its key.
    pub fn reasons(&self) -> String {
        let one = |located: &Located| match located.mistake.path.as_str() {
            "" => located.mistake.message.clone(),
            path => format!("`{path}`: {}", located.mistake.message),
        };
        self.mistakes.iter().map(one).collect::<Vec<_>>().join("\n")
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(only) = self.only() {
            return write!(f, "{only}");
        }
        if self.scenario.is_empty() {
            return write!(f, "the command line is wrong");
        }
        match self.mistakes.len() {
            1 => write!(f, "cannot run `{}`", self.scenario),
            n => write!(f, "cannot run `{}`: {n} mistakes", self.scenario),
        }
    }
}

impl std::error::Error for Refusal {}

impl Diagnostic for Refusal {
    fn help<'a>(&'a self) -> Option<Box<dyn std::fmt::Display + 'a>> {
        self.only()?.help()
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        if self.only().is_some() {
            return None;
        }
        Some(Box::new(self.mistakes.iter().map(|mistake| mistake as &dyn Diagnostic)))
    }
}
