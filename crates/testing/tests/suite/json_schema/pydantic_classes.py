"""Pydantic classes. With `schemas`: prints [name, schema] for each class, one per line. With `validate`: reads [name, text] per line, and
validates each text with its class."""

import dataclasses
import datetime
import decimal
import enum
import ipaddress
import json
import pathlib
import sys
import typing
import uuid
from collections import Counter
from typing import Annotated, Generic, Literal, Optional, TypeVar, Union

import pydantic
import typing_extensions
from pydantic import BaseModel, ConfigDict, Field, RootModel, TypeAdapter


class Person(BaseModel):
    name: str
    age: int
    email: Optional[str] = None


class Color(enum.Enum):
    RED = "red"
    GREEN = "green"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 3


class Flags(BaseModel):
    color: Color
    level: Level
    mode: Literal["fast", "slow", 3, None]


class Numbers(BaseModel):
    whole: int
    real: float
    yes: bool
    nothing: None


class Bounds(BaseModel):
    small: Annotated[int, Field(ge=-5, lt=100)]
    even: Annotated[int, Field(multiple_of=2, ge=0)]
    share: Annotated[float, Field(gt=0, lt=1)]


class Texts(BaseModel):
    code: Annotated[str, Field(pattern=r"^[A-Z]{2}-[0-9]{3}$")]
    short: Annotated[str, Field(min_length=2, max_length=5)]


class Lists(BaseModel):
    all: list[int]
    few: Annotated[list[str], Field(min_length=1, max_length=3)]
    nested: list[list[bool]]


class Sets(BaseModel):
    tags: set[str]
    numbers: frozenset[int]
    colors: set[Color]


class SmallSets(BaseModel):
    levels: Annotated[set[Level], Field(max_length=2)]


class Tuples(BaseModel):
    pair: tuple[int, str]
    many: tuple[float, ...]
    empty: tuple[()]


class Maps(BaseModel):
    counts: dict[str, int]
    people: dict[str, Person]
    keyed: dict[Color, bool]


class CountedMaps(BaseModel):
    counts: Annotated[dict[str, int], Field(min_length=1, max_length=4)]


class Team(BaseModel):
    lead: Person
    members: list[Person]


class Tree(BaseModel):
    value: int
    children: list["Tree"] = []


class Folder(BaseModel):
    name: str
    files: list["File"]


class File(BaseModel):
    name: str
    parent: Optional[Folder] = None


class Either(BaseModel):
    value: Union[int, str, list[int]]
    other: Optional[Union[Person, Color]] = None


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str


class Pet(BaseModel):
    pet: Annotated[Union[Cat, Dog], Field(discriminator="kind")]


class Moments(BaseModel):
    at: datetime.datetime
    aware: pydantic.AwareDatetime
    day: datetime.date
    time: datetime.time
    span: datetime.timedelta


class Decimals(BaseModel):
    # Their schemas allow any text, and numbers of any length.
    any: decimal.Decimal
    money: Annotated[decimal.Decimal, Field(max_digits=8, decimal_places=2)]
    positive: Annotated[decimal.Decimal, Field(gt=0)]


class Ids(BaseModel):
    any: uuid.UUID
    random: pydantic.UUID4
    ordered: pydantic.UUID7


class Mails(BaseModel):
    mail: pydantic.EmailStr
    named: pydantic.NameEmail


class Links(BaseModel):
    any: pydantic.AnyUrl
    web: pydantic.HttpUrl


class Addresses(BaseModel):
    four: ipaddress.IPv4Address
    six: ipaddress.IPv6Address
    any: pydantic.IPvAnyAddress


class Networks(BaseModel):
    four: ipaddress.IPv4Network
    six: ipaddress.IPv6Network
    interface: ipaddress.IPv4Interface
    any: pydantic.IPvAnyNetwork


class Bytes(BaseModel):
    raw: bytes
    encoded: pydantic.Base64Bytes


class Aliased(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    first: int = Field(alias="firstName")
    odd: str = Field(alias='a "quoted" näme')


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    value: int


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    value: int


class Defaults(BaseModel):
    count: int = 3
    names: list[str] = Field(default_factory=list)
    color: Color = Color.RED


class Rows(RootModel):
    root: list[Person]


T = TypeVar("T")


class Page(BaseModel, Generic[T]):
    items: list[T]
    next: Optional[int] = None


class Secret(BaseModel):
    password: pydantic.SecretStr
    path: pathlib.Path


@dataclasses.dataclass
class Point:
    x: float
    y: float
    label: Optional[str] = None


class Options(typing_extensions.TypedDict, total=False):
    verbose: bool
    depth: int


class Corner(typing.NamedTuple):
    x: int
    name: str = "corner"


class Deep(BaseModel):
    value: Optional[list[dict[str, Union[Person, list[Optional[float]]]]]] = None


class Anything(BaseModel):
    value: typing.Any
    json_value: pydantic.JsonValue


class Described(BaseModel):
    """A class whose schema has titles, descriptions and examples."""

    value: Annotated[int, Field(title="Value", description="A number.", examples=[1, 2])]


CLASSES = [
    Person, Flags, Numbers, Bounds, Texts, Lists, Sets, SmallSets, Tuples, Maps, CountedMaps, Team, Tree, Folder, Either,
    Pet, Moments, Decimals, Ids, Mails, Links, Addresses, Networks, Bytes, Aliased, Closed, Open, Defaults, Rows,
    Page[Person], Secret, Point, Options, Corner, Deep, Anything, Described,
]  # fmt: skip
ADAPTERS = {getattr(one, "__name__"): TypeAdapter(one) for one in CLASSES}

if sys.argv[1] == "schemas":
    for name, adapter in ADAPTERS.items():
        print(json.dumps([name, adapter.json_schema()]))
else:
    # The class checks more than the schema states.
    looser = {"Decimals"}
    judged, wrong = Counter(), []
    for line in sys.stdin:
        name, text = json.loads(line)
        judged[name] += 1
        if name in looser:
            json.loads(text)
            continue
        try:
            ADAPTERS[name].validate_json(text)
        except pydantic.ValidationError as error:
            wrong.append(f"{name}: {text}: {error.errors()[0]['loc']}: {error.errors()[0]['msg']}")
    print(f"{sum(judged.values())} texts of {len(judged)} classes")
    sys.exit(f"{len(wrong)} wrong:\n" + "\n".join(wrong[:60]) if wrong else 0)
