//! What a CI job gives to its own steps, and nobody whom a run starts may have: servers and probes are code of the change under
//! test.

/// Variables of a CI job: its tokens, and the files by which a step speaks to its runner. Whatever a run starts does not get them.
///
/// They keep a careless server from a token that may write and from forging outputs. They are no wall: a process of the same user
/// can look at its parents.
pub const OF_THE_JOB: [&str; 12] = [
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
    "ACTIONS_ID_TOKEN_REQUEST_URL",
    "ACTIONS_RUNTIME_TOKEN",
    "CI_JOB_TOKEN",
    "GH_TOKEN",
    "GITHUB_ENV",
    "GITHUB_OUTPUT",
    "GITHUB_PATH",
    "GITHUB_STATE",
    "GITHUB_STEP_SUMMARY",
    "GITHUB_TOKEN",
    "GOODPUT_NOTE_TOKEN",
];
