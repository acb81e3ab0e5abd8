"""A connection over TLS; apart, since plain ones do not need the library."""

from __future__ import annotations

import ssl

from argosy.steps.transfer.wire.connection import IN, OUT, Connection


class SecureConnection(Connection):
    """The same, with a handshake before the first request."""

    __slots__ = ()
    wait = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
    keeps_rest = True
    hidden = 32 << 10

    def _reached(self) -> None:
        context = self.route.context
        assert context is not None
        try:
            self.sock = context.wrap_socket(
                self.sock,
                do_handshake_on_connect=False,
                server_hostname=self.route.host,
                session=self.route.session,
            )
        except (OSError, ValueError) as error:
            self._lose(error)
            return
        self.step = self._shake_hands
        self._shake_hands()

    def _shake_hands(self) -> None:
        assert isinstance(self.sock, ssl.SSLSocket)
        try:
            self.sock.do_handshake()
        except ssl.SSLWantReadError:
            self._await(IN)
        except ssl.SSLWantWriteError:
            self._await(OUT)
        except OSError as error:
            self._lose(error)
        else:
            self._established()

    def _read(self) -> int:
        """Read all TLS records that are there: each is small."""
        sock, buffer, count = self.sock, self._owner.buffer, 0
        try:
            while count < len(buffer) and (got := sock.recv_into(buffer[count:])):
                count += got
        except OSError:
            # What came before is good; what is wrong shows again at the next read.
            if not count:
                raise
        return count

    def _answered(self) -> None:
        if self.route.session is None:
            assert isinstance(self.sock, ssl.SSLSocket)
            # Later connections shake hands at a fraction of the cost.
            self.route.session = self.sock.session
        super()._answered()
