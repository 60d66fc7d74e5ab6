"""llama.cpp's own HTTP server, from the xllamacpp wheel: MODEL.gguf NAME PORT SLOTS, until SIGTERM."""

import signal
import sys

import xllamacpp


def main() -> None:
    model, name, port, slots = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    parameters = xllamacpp.CommonParams()
    parameters.model.path = model
    parameters.model_alias = {name}
    parameters.hostnames, parameters.port = ["127.0.0.1"], port
    parameters.n_parallel = slots
    parameters.n_ctx = 2048 * slots
    parameters.endpoint_metrics = True
    parameters.endpoint_slots = True
    # A repeated prompt must cost what it cost the first time.
    parameters.cache_prompt = False
    # One thread for the model leaves the second core of a small machine to the load generator.
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    parameters.warmup = True
    server = xllamacpp.Server(parameters)
    print("listening on", server.listening_address, flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    while True:
        signal.pause()


if __name__ == "__main__":
    main()
