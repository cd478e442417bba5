"""Reads a JSON array of a format and a text per line; each text must be valid in Pydantic and jsonschema."""

import datetime
import fractions
import ipaddress
import json
import sys
import uuid
from collections import Counter

import jsonschema
import pydantic
from pydantic import TypeAdapter

TYPES = {
    "date-time": pydantic.AwareDatetime,
    "date": datetime.date,
    "time": datetime.time,
    "duration": datetime.timedelta,
    "email": pydantic.EmailStr,
    "idn-email": pydantic.EmailStr,
    "name-email": pydantic.NameEmail,
    "ipv4": ipaddress.IPv4Address,
    "ipv6": ipaddress.IPv6Address,
    "ipv4interface": ipaddress.IPv4Interface,
    "ipv6interface": ipaddress.IPv6Interface,
    "ipv4network": ipaddress.IPv4Network,
    "ipv6network": ipaddress.IPv6Network,
    "ipvanyaddress": pydantic.IPvAnyAddress,
    "ipvanyinterface": pydantic.IPvAnyInterface,
    "ipvanynetwork": pydantic.IPvAnyNetwork,
    "uri": pydantic.AnyUrl,
    "multi-host-uri": pydantic.networks._BaseMultiHostUrl,
    "uuid": uuid.UUID,
    **{f"uuid{version}": getattr(pydantic, f"UUID{version}") for version in (1, 3, 4, 5, 6, 7, 8)},
    "base64": pydantic.Base64Bytes,
    "base64url": pydantic.Base64UrlBytes,
    "fraction": fractions.Fraction,
}

checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
adapters = {name: TypeAdapter(kind) for name, kind in TYPES.items()}
http = TypeAdapter(pydantic.HttpUrl)
judged, wrong = Counter(), []
for line in sys.stdin:
    name, text = json.loads(line)
    kinds = [adapters[name]] if name in adapters else []
    if name == "uri" and text.lower().startswith(("http:", "https:")):
        kinds.append(http)
    for kind in kinds:
        judged[name, "pydantic"] += 1
        try:
            kind.validate_json(json.dumps(text))
        except pydantic.ValidationError as error:
            wrong.append(f"{name}: {text!r}: {error.errors()[0]['msg']}")
    if name in checker.checkers:
        judged[name, "jsonschema"] += 1
        if not checker.conforms(text, name):
            wrong.append(f"{name}: {text!r}: not to jsonschema")
for (name, judge), count in judged.items():
    print(f"{name}: {count} texts, {judge}")
sys.exit(f"{len(wrong)} wrong:\n" + "\n".join(wrong[:60]) if wrong else 0)
