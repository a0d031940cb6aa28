"""The aioquic end of quic_aioquic: an echo client and an echo server, ChaCha20-Poly1305 only.

quic_echo.py client PORT CA_FILE FILE    sends the file, wants it back, updates the keys half way
quic_echo.py server CERT KEY             serves one connection, which has to update the keys

Exits with 0 only if the suite was ChaCha20-Poly1305 and the keys have been updated: by the client, and
perhaps more often, for the other end may begin an update whenever it likes.
"""

import asyncio
import sys

from aioquic.asyncio import connect, serve
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, StreamDataReceived
from aioquic.quic.logger import QuicLogger
from aioquic.tls import CipherSuite

SUITE = CipherSuite.CHACHA20_POLY1305_SHA256


def check(quic, logger, trigger):
    """aioquic has no public view of the suite; the updates are in its log."""
    assert quic.tls.key_schedule.cipher_suite == SUITE, "another suite"
    events = [event for trace in logger.to_dict()["traces"] for event in trace["events"]]
    triggers = [event["data"]["trigger"] for event in events if "key_updated" in event["name"]]
    assert trigger in triggers, f"the keys were not updated: {triggers}"


async def client(port, ca_file, path):
    logger = QuicLogger()
    configuration = QuicConfiguration(
        alpn_protocols=["echo"], cipher_suites=[SUITE], quic_logger=logger
    )
    configuration.load_verify_locations(ca_file)
    configuration.server_name = "localhost"
    with open(path, "rb") as file:
        data = file.read()
    half = len(data) // 2
    async with connect("127.0.0.1", int(port), configuration=configuration) as connection:
        reader, writer = await connection.create_stream()
        writer.write(data[:half])
        assert await reader.readexactly(half) == data[:half], "the first half came back changed"
        # before the handshake is confirmed it would be put off, perhaps until all is over
        while not connection._quic._handshake_confirmed:
            await connection.ping()
        connection.request_key_update()
        writer.write(data[half:])
        writer.write_eof()
        assert await reader.read() == data[half:], "the second half came back changed"
        check(connection._quic, logger, "local_update")


async def server(cert, key):
    logger = QuicLogger()
    configuration = QuicConfiguration(
        is_client=False, alpn_protocols=["echo"], cipher_suites=[SUITE], quic_logger=logger
    )
    configuration.load_cert_chain(cert, key)
    ended = asyncio.get_running_loop().create_future()

    class Echo(QuicConnectionProtocol):
        def quic_event_received(self, event):
            if isinstance(event, StreamDataReceived):
                self._quic.send_stream_data(event.stream_id, event.data, event.end_stream)
            elif isinstance(event, ConnectionTerminated):
                ended.set_result(self._quic)

    listener = await serve("127.0.0.1", 0, configuration=configuration, create_protocol=Echo)
    port = listener._transport.get_extra_info("sockname")[1]
    print(f"listening on 127.0.0.1:{port}", flush=True)
    check(await ended, logger, "remote_update")


asyncio.run({"client": client, "server": server}[sys.argv[1]](*sys.argv[2:]))
