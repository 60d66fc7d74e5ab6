//! Where requests go, and how an ephemeral endpoint is started.

use std::time::Duration;

use url::Url;

use super::{Known, Meaning};
use crate::audio::{Encoding, PcmFormat};
use crate::contract::document::join;
use crate::contract::model::{Endpoint, HttpVersion, Launch, LaunchWhat};
use crate::contract::{raw, secrets};
use crate::observe::{Protocol, REALTIME_AUDIO};
use crate::units::format_duration;

/// Longest life of a request when the contract does not say.
pub(super) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);
const DEFAULT_IDLE_TIMEOUT: Duration = Duration::from_secs(30);
const DEFAULT_READY_WITHIN: Duration = Duration::from_secs(600);
const DEFAULT_FIRST_TOKEN_WITHIN: Duration = Duration::from_secs(120);
/// What the simulated endpoint speaks.
const SIMULATED: [Protocol; 3] = [Protocol::OpenaiChat, Protocol::OpenaiChatJson, Protocol::OpenaiCompletions];
const AUDIO: &str = "/endpoint/audio";
const DEFAULT_STOP_WITHIN: Duration = Duration::from_secs(30);

impl Meaning<'_> {
    pub(super) fn endpoint(&mut self, written: raw::Endpoint, known: Known) -> Option<Endpoint> {
        let simulated = written.launch.as_ref().is_some_and(|launch| launch.simulate.is_some());
        let url = self.url(written.url.as_deref(), simulated, known.protocol);
        let model = self.plain_text(written.model, "/endpoint/model");
        let headers = self.headers(written.headers.unwrap_or_default(), "/endpoint/headers");
        let idle_timeout = self.idle_timeout(written.idle_timeout.as_ref(), known.timeout);
        let ca_file = written.ca_file.map(|file| self.folder.join(file));
        let has_proxy = self.is_written(written.proxy.as_ref(), "/endpoint/proxy");
        let proxy = self.proxy(written.proxy.as_deref());
        let has_launch = self.is_written(written.launch.as_ref(), "/endpoint/launch");
        let launch = written.launch.and_then(|launch| self.launch(launch, known.protocol, "/endpoint/launch"));
        let (input_audio, output_audio) = self.audio(written.audio.unwrap_or_default(), known.protocol);
        if let (Some(Protocol::OpenaiRealtime), Some(raw::HttpVersion::Http2)) = (known.protocol, written.http) {
            self.fault("/endpoint/http", "a WebSocket is opened over HTTP/1.1; remove the key");
        }
        Some(Endpoint {
            url: url?,
            protocol: known.protocol?,
            model: model?,
            headers: headers?,
            timeout: known.timeout?,
            idle_timeout: idle_timeout?,
            http: match written.http {
                None | Some(raw::HttpVersion::Auto) => HttpVersion::Auto,
                Some(raw::HttpVersion::Http1) => HttpVersion::Http1,
                Some(raw::HttpVersion::Http2) => HttpVersion::Http2,
            },
            ca_file,
            proxy: if has_proxy { Some(proxy?) } else { None },
            input_audio,
            output_audio,
            launch: if has_launch { Some(launch?) } else { None },
        })
    }

    fn url(&mut self, written: Option<&str>, simulated: bool, protocol: Option<Protocol>) -> Option<Url> {
        let pointer = "/endpoint/url";
        let schemes: &[&str] = match protocol {
            Some(Protocol::OpenaiRealtime) => &["ws", "wss", "http", "https"],
            _ => &["http", "https"],
        };
        let url = self.http_url(written?, pointer, schemes)?;
        if url.fragment().is_some() {
            self.fault(pointer, "a fragment (`#…`) is never sent; remove it");
            return None;
        }
        if holds_secret(&url) {
            let message = "the query holds a secret; send it as a header with `headers: { NAME: { env: VARIABLE } }`";
            self.fault(pointer, message);
            return None;
        }
        if url.port() == Some(0) && !simulated {
            self.fault(
                pointer,
                "port 0 means a free port, which only `launch: { simulate: … }` can take; write the port",
            );
            return None;
        }
        Some(url)
    }

    /// The formats of sound that is sent and that comes back.
    fn audio(&mut self, written: raw::Audio, protocol: Option<Protocol>) -> (Option<PcmFormat>, Option<PcmFormat>) {
        let realtime = protocol == Some(Protocol::OpenaiRealtime);
        let default = realtime.then_some(REALTIME_AUDIO);
        let speaks = realtime || protocol.is_none_or(|protocol| protocol == Protocol::OpenaiSpeech);
        let (input_at, output_at) = (join(AUDIO, "input"), join(AUDIO, "output"));
        if written.input.is_some() && !realtime && protocol.is_some() {
            self.fault_at_key(&input_at, "only `openai-realtime` is sent sound without a container; remove the key");
        }
        if written.output.is_some() && !speaks {
            self.fault_at_key(&output_at, "only `openai-realtime` and `openai-speech` answer in sound; remove the key");
        }
        let input = written.input.and_then(|format| audio_format(&format)).or(default);
        let output = written.output.and_then(|format| audio_format(&format)).or(default);
        (input, output)
    }

    fn proxy(&mut self, written: Option<&str>) -> Option<Url> {
        let pointer = "/endpoint/proxy";
        let url = self.http_url(written?, pointer, &["http"])?;
        if url.path() != "/" || url.query().is_some() || url.fragment().is_some() || url.port() == Some(0) {
            self.fault(pointer, "a proxy is a host and a port; write it as in `http://proxy.example:3128`");
            return None;
        }
        Some(url)
    }

    /// A URL of one of the schemes, without credentials. What was written is not repeated: it may hold some.
    pub(super) fn http_url(&mut self, written: &str, pointer: &str, schemes: &[&str]) -> Option<Url> {
        // The URL standard drops line breaks and blanks at the ends without a word; here they are mistakes.
        if written.chars().any(|c| c.is_control() || c.is_whitespace()) {
            self.fault(pointer, "a URL holds no blanks or control characters; remove them");
            return None;
        }
        let url = match Url::parse(written) {
            Ok(url) => url,
            Err(error) => {
                self.fault(pointer, format!("not a URL ({error}); write it in full, as in `{}`", example(schemes)));
                return None;
            }
        };
        if !schemes.contains(&url.scheme()) {
            let message = format!("the scheme must be {}; write it as in `{}`", schemes.join(" or "), example(schemes));
            self.fault(pointer, message);
            return None;
        }
        if !url.username().is_empty() || url.password().is_some() {
            let message = "the URL holds credentials; remove them and name an environment variable instead: \
                `headers: { Authorization: { env: VARIABLE, prefix: \"Basic \" } }`";
            self.fault(pointer, message);
            return None;
        }
        Some(url)
    }

    fn idle_timeout(
        &mut self,
        written: Option<&crate::contract::schema::DurationText>,
        timeout: Option<Duration>,
    ) -> Option<Duration> {
        let pointer = "/endpoint/idle_timeout";
        if !self.is_written(written, pointer) {
            return Some(timeout.map_or(DEFAULT_IDLE_TIMEOUT, |timeout| timeout.min(DEFAULT_IDLE_TIMEOUT)));
        }
        let idle = self.limit(written, pointer)?;
        if let Some(timeout) = timeout.filter(|timeout| *timeout < idle) {
            let message = format!(
                "longer than the `timeout` of {}, so it would never end a request; shorten it or raise the `timeout`",
                format_duration(timeout)
            );
            self.fault(pointer, message);
            return None;
        }
        Some(idle)
    }

    /// An endpoint to start, written at `pointer`.
    pub(super) fn launch(&mut self, written: raw::Launch, protocol: Option<Protocol>, pointer: &str) -> Option<Launch> {
        let command_at = join(pointer, "command");
        let has_command = self.is_written(written.command.as_ref(), &command_at);
        let has_simulate = self.is_written(written.simulate.as_ref(), &join(pointer, "simulate"));
        if has_command == has_simulate {
            let what = if has_command { "only one of" } else { "one of" };
            self.fault(
                pointer,
                format!(
                    "write {what} `command` (a server to start) and `simulate` (a profile of the simulated endpoint)"
                ),
            );
        }
        if let (Some(_), Some(protocol)) = (&written.simulate, protocol)
            && !SIMULATED.contains(&protocol)
        {
            let spoken = SIMULATED.map(Protocol::name).join(", ");
            let message = format!("the simulated endpoint speaks {spoken}, and not `{}`", protocol.name());
            self.fault_at_key(&join(pointer, "simulate"), message);
        }
        let what = match written.simulate {
            Some(profile) => Some(LaunchWhat::Simulate(self.folder.join(profile))),
            None => self.command(written.command, &command_at).map(LaunchWhat::Command),
        };
        let ready = written.ready.unwrap_or_default();
        let ready_at = join(pointer, "ready");
        let ready_path = self.ready_path(ready.path, &join(&ready_at, "path"));
        let within = self.above_zero(ready.within.as_ref(), &join(&ready_at, "within"), DEFAULT_READY_WITHIN);
        let first_token = ready.first_token_within.as_ref();
        let first_token =
            self.above_zero(first_token, &join(&ready_at, "first_token_within"), DEFAULT_FIRST_TOKEN_WITHIN);
        let stop = self.above_zero(written.stop_within.as_ref(), &join(pointer, "stop_within"), DEFAULT_STOP_WITHIN);
        Some(Launch {
            what: what?,
            ready_path,
            ready_within: within?,
            first_token_within: first_token?,
            stop_within: stop?,
        })
    }

    fn ready_path(&mut self, written: Option<String>, pointer: &str) -> Option<String> {
        let path = written?;
        if !path.starts_with('/') || path.chars().any(|c| c.is_control() || c.is_whitespace()) {
            self.fault(pointer, "not a path on the endpoint's host; write it as in `/health`");
            return None;
        }
        Some(path)
    }
}

/// The format as written; its bounds are the schema's, and what is missing is told there.
fn audio_format(written: &raw::AudioFormat) -> Option<PcmFormat> {
    let encoding = match written.encoding {
        None | Some(raw::AudioEncoding::Pcm16) => Encoding::Pcm16,
        Some(raw::AudioEncoding::G711Ulaw) => Encoding::G711Ulaw,
        Some(raw::AudioEncoding::G711Alaw) => Encoding::G711Alaw,
    };
    let sample_rate = u32::try_from(written.sample_rate?.0).ok()?;
    let channels = written.channels.map_or(Some(1), |channels| u16::try_from(channels.0).ok())?;
    Some(PcmFormat { encoding, sample_rate, channels })
}

fn example(schemes: &[&str]) -> &'static str {
    if schemes.contains(&"wss") {
        "ws://127.0.0.1:8000/v1/realtime"
    } else if schemes.contains(&"https") {
        "http://127.0.0.1:8000/v1/chat/completions"
    } else {
        "http://proxy.example:3128"
    }
}

/// Whether a query says by its names that it holds a secret.
pub(super) fn holds_secret(url: &Url) -> bool {
    url.query_pairs().any(|(name, value)| name == "key" || secrets::name_says_so(&name) && !value.is_empty())
}
