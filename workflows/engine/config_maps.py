"""ConfigMaps that were given with a workflow: values of parameters and variables, files of volumes."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from argosy.steps.contract.errors import InputError

LABEL, PARAMETER = "workflows.argoproj.io/configmap-type", "Parameter"
"""Argo's controller sees no other ConfigMap when it looks for the value of a parameter."""
_FIELDS = ("apiVersion", "kind", "metadata", "data", "binaryData", "immutable")
_KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}")
_MODE = 0o644


class ConfigMaps:
    """ConfigMaps by name, as Kubernetes would have taken them."""

    def __init__(self) -> None:
        self._texts: dict[str, dict[str, str]] = {}
        self._bytes: dict[str, dict[str, bytes]] = {}
        self._labelled: set[str] = set()

    def add(self, manifest: Mapping[str, Any], where: str) -> None:
        """Take one over.

        Raises:
            InputError: Kubernetes would not take it, or there is one of that name.
        """
        name = str((manifest.get("metadata") or {}).get("name") or "")
        where = f"{where}: ConfigMap {name!r}"
        unknown = next((key for key in manifest if key not in _FIELDS), None)
        if not name or unknown:
            raise InputError(f"{where}: {f'{unknown}: unknown field' if unknown else 'metadata.name: missing'}")
        if name in self._texts:
            raise InputError(f"{where}: was given twice")
        texts, coded = manifest.get("data") or {}, manifest.get("binaryData") or {}
        for key, value in [*texts.items(), *coded.items()]:
            if not _KEY.fullmatch(key) or not isinstance(value, str) or (key in texts and key in coded):
                raise InputError(f"{where}: {key}: keys are of A-Z, a-z, 0-9, -, _ and ., each once; values are texts")
        try:
            decoded = {key: base64.b64decode(value, validate=True) for key, value in coded.items()}
        except binascii.Error as error:
            raise InputError(f"{where}: binaryData: no base64 ({error})") from None
        self._texts[name] = dict(texts)
        self._bytes[name] = {**{key: value.encode() for key, value in texts.items()}, **decoded}
        if ((manifest.get("metadata") or {}).get("labels") or {}).get(LABEL) == PARAMETER:
            self._labelled.add(name)

    def texts(self, name: str) -> dict[str, str]:
        """What variables can be made of; nothing where there is no such ConfigMap."""
        return self._texts.get(name, {})

    def parameter(self, name: str, key: str) -> str:
        """The value that Argo would give a parameter.

        Raises:
            LookupError: it finds none; the text is Argo's.
        """
        if name not in self._labelled:
            raise LookupError(
                f"ConfigMap '{name}' does not exist. Please make sure it has the label {LABEL}: {PARAMETER} "
                "to be detectable by the controller"
            )
        if key not in self._texts[name]:
            raise LookupError(f"ConfigMap '{name}' does not have the key '{key}'")
        return self._texts[name][key]

    def missing(self, reference: Mapping[str, Any], keys: list[str]) -> Iterator[str]:
        """What a variable or volume needs and nobody gave; nothing where it is optional or has a tag."""
        name = str(reference.get("name"))
        if reference.get("optional") or "{{" in f"{name}{keys}":
            return
        if name not in self._texts:
            yield f"ConfigMap {name!r} was not given; add it to the YAML, or a file with it by --templates"
            return
        for key in keys:
            if key not in self._bytes[name]:
                yield f"ConfigMap {name!r} has no key {key!r}; it has {', '.join(self._bytes[name]) or 'none'}"

    def volume_problems(self, source: Mapping[str, Any]) -> Iterator[str]:
        """Why the files of a volume ``configMap`` cannot be laid out; see :meth:`missing`."""
        items = source.get("items") or []
        yield from self.missing(source, [str(each.get("key")) for each in items])
        for path in (str(each.get("path") or "/") for each in items):
            if path.startswith("/") or ".." in path.split("/"):
                yield f"{path!r} must be a relative path without '..'"

    def place(self, source: Mapping[str, Any], folder: Path) -> None:
        """The files of a volume ``configMap``, as the kubelet lays them out.

        Raises:
            LookupError: see :meth:`volume_problems`.
            OSError: it cannot be written.
        """
        for wrong in self.volume_problems(source):
            raise LookupError(wrong)
        held = self._bytes.get(str(source.get("name")), {})
        items = source.get("items") or [{"key": key, "path": key} for key in held]
        data = folder / "..data"
        for item in items:
            if str(item["key"]) not in held:
                continue
            file = folder / "..1" / str(item["path"])
            file.parent.mkdir(parents=True, exist_ok=True)
            file.unlink(missing_ok=True)
            file.write_bytes(held[str(item["key"])])
            mode = item.get("mode", source.get("defaultMode"))
            file.chmod(_MODE if mode is None else int(mode))
            top = folder / str(item["path"]).split("/")[0]
            if not top.is_symlink():
                top.symlink_to(Path("..data") / top.name)
        if items and not data.is_symlink():
            data.symlink_to("..1")
