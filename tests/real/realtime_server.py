"""A real OpenAI Realtime server: WHISPER_FOLDER PIPER_VOICE.onnx PORT SESSIONS, until SIGTERM.

Sessions, events, resampling and the audio's way to the client are those of Hugging Face's `speech-to-speech`, which speaks
the protocol over WebSocket. What that needs a graphics card for is replaced here: loudness tells when speech ends, Whisper
tiny writes down what was said, and Piper says it back. So a reply has a text that a test knows beforehand. The package lets
only the server end a turn; where a session switches that off, a response answers all sound since the last one.
"""

import os
import queue
import signal
import sys
import threading

import numpy
import soxr
from faster_whisper import WhisperModel
from piper import PiperVoice, SynthesisConfig
from speech_to_speech.api.openai_realtime.pipeline_unit import PipelineUnit
from speech_to_speech.api.openai_realtime.runtime_config import RuntimeConfig
from speech_to_speech.api.openai_realtime.server import RealtimeServer
from speech_to_speech.api.openai_realtime.service import RealtimeService
from speech_to_speech.pipeline.cancel_scope import CancelScope
from speech_to_speech.pipeline.control import SESSION_END, is_control_message
from speech_to_speech.pipeline.events import (
    AssistantOutputEvent,
    AssistantResponseDoneEvent,
    SpeechStartedEvent,
    SpeechStoppedEvent,
    TranscriptionCompletedEvent,
)
from speech_to_speech.pipeline.messages import AUDIO_RESPONSE_DONE, AssistantTextPart, AudioOutput, GenerateResponseRequest

RATE = 16_000  # of all audio between the package and this program: one channel, 16 bit
BLOCK = 512  # samples of one piece of audio from the package
LOUD = 300  # root mean square of a block of speech; full scale is 32,768
PAUSE = 0.5  # seconds of silence that end a turn


class Models:
    """What listens and speaks for all sessions, on one core."""

    def __init__(self, whisper: str, voice: str) -> None:
        self.whisper = WhisperModel(whisper, device="cpu", compute_type="int8", cpu_threads=1)
        self.voice = PiperVoice.load(voice)

    def transcribe(self, samples: numpy.ndarray) -> str:
        segments, _ = self.whisper.transcribe(samples.astype(numpy.float32) / 32_768, language="en", beam_size=1)
        return "".join(segment.text for segment in segments).strip()

    def speak(self, text: str):
        """The audio of one sentence after the other. Without noise, a text always sounds the same."""
        for sentence in self.voice.synthesize(text, SynthesisConfig(noise_scale=0, noise_w_scale=0)):
            yield soxr.resample(sentence.audio_int16_array, sentence.sample_rate, RATE)


class Conversation:
    """One session's side of the conversation: a thread of its own between the queues of the package."""

    def __init__(self, index: int, models: Models, stop: threading.Event) -> None:
        self.models, self.stop = models, stop
        # One queue for sound and for requests keeps them in the client's order.
        self.asked = queue.Queue()
        self.unit = PipelineUnit(
            index=index,
            service=RealtimeService(text_prompt_queue=self.asked),
            cancel_scope=CancelScope(),
            should_listen=threading.Event(),
            response_playing=threading.Event(),
            input_queue=self.asked,
            output_queue=queue.Queue(),
            text_output_queue=queue.Queue(),
            text_prompt_queue=self.asked,
            handlers=[],
        )
        self.reset()

    def reset(self) -> None:
        self.heard = 0  # blocks since the session began
        self.turn = 0
        self.speech: list[numpy.ndarray] = []
        self.silent = 0  # blocks of silence at the end of the speech

    def run(self) -> None:
        while not self.stop.is_set():
            try:
                item = self.asked.get(timeout=0.5)
            except queue.Empty:
                continue
            if is_control_message(item, SESSION_END.kind):
                self.reset()
                self.unit.output_queue.put(item)
            elif isinstance(item, GenerateResponseRequest):
                self.reply(item)
            elif isinstance(item, tuple):
                self.hear(*item)

    def hear(self, sound: bytes, configuration: RuntimeConfig) -> None:
        block = numpy.frombuffer(sound, numpy.int16)
        if client_ends_turns(configuration):
            self.speech.append(block)
        else:
            self.listen(block)

    def listen(self, block: numpy.ndarray) -> None:
        loud = numpy.sqrt(numpy.mean(numpy.square(block, dtype=numpy.float64))) >= LOUD
        if loud and not self.speech:
            self.turn += 1
            self.tell(SpeechStartedEvent(audio_start_ms=self.milliseconds(self.heard), turn_id=str(self.turn)))
        self.heard += 1
        if not loud and not self.speech:
            return
        self.speech.append(block)
        self.silent = 0 if loud else self.silent + 1
        if self.silent * BLOCK >= PAUSE * RATE:
            self.end_turn()

    def end_turn(self) -> None:
        samples, turn, spoken = numpy.concatenate(self.speech), str(self.turn), self.heard - self.silent
        self.speech, self.silent = [], 0
        seconds = len(samples) / RATE
        self.tell(SpeechStoppedEvent(duration_s=seconds, audio_end_ms=self.milliseconds(spoken), turn_id=turn))
        self.tell(TranscriptionCompletedEvent(transcript=self.models.transcribe(samples), turn_id=turn))

    def reply(self, request: GenerateResponseRequest) -> None:
        """Says the last thing back that the user said or wrote."""
        about = {
            "cancel_generation": self.unit.cancel_scope.generation,
            "response_key": request.response_key,
        }
        turn = {"turn_id": request.turn_id, "turn_revision": request.turn_revision}
        text = self.unheard_text(request.runtime_config) or last_user_text(request)
        put = self.unit.output_queue.put
        put(AssistantOutputEvent(parts=[AssistantTextPart(text=text)], output_sequence=0, **turn, **about))
        for samples in self.models.speak(text):
            for start in range(0, len(samples), BLOCK):
                put(AudioOutput(audio=samples[start : start + BLOCK].tobytes(), **about))
        put(AssistantResponseDoneEvent(**turn, **about))
        put(AudioOutput(audio=AUDIO_RESPONSE_DONE, **about))

    def unheard_text(self, configuration: RuntimeConfig) -> str:
        """What was said since the last response, where the client ends the turn."""
        if not client_ends_turns(configuration):
            return ""
        speech, self.speech = self.speech, []
        return self.models.transcribe(numpy.concatenate(speech)) if speech else ""

    def tell(self, event) -> None:
        self.unit.text_output_queue.put(event)

    @staticmethod
    def milliseconds(blocks: int) -> int:
        return blocks * BLOCK * 1000 // RATE


def client_ends_turns(configuration: RuntimeConfig) -> bool:
    """Whether `turn_detection` was set to null; left out, the server ends turns."""
    heard = configuration.session.audio.input
    return heard.turn_detection is None and "turn_detection" in heard.model_fields_set


def last_user_text(request: GenerateResponseRequest) -> str:
    for item in reversed(request.runtime_config.chat.buffer):
        if getattr(item, "role", None) == "user":
            return " ".join(part.text or part.transcript or "" for part in item.content).strip()
    return "Nothing was said."


def main() -> None:
    whisper, voice, port, sessions = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    # One core leaves the second of a small machine to the load generator. The package looks for work a hundred times a
    # second in every session, idle or not; at a low priority that is in nobody's way.
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    os.nice(10)
    stop = threading.Event()
    models = Models(whisper, voice)
    conversations = [Conversation(index, models, stop) for index in range(sessions)]
    for conversation in conversations:
        threading.Thread(target=conversation.run, daemon=True).start()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    server = RealtimeServer(stop, [conversation.unit for conversation in conversations], host="127.0.0.1", port=port)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.5)


if __name__ == "__main__":
    main()
