"""The wire contract of the retrieval API, as protocol.md states it."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field


def _encodable(text: str) -> str:
    # JSON may escape half of a surrogate pair, which no tokenizer can read.
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"not Unicode text: {error.reason}") from error
    return text


def _whole(number: object) -> object:
    # JSON knows no integers: 3.0 is the number 3.
    return int(number) if isinstance(number, float) and number.is_integer() else number


class Document(BaseModel):
    """One passage of the corpus.

    Attributes:
        id: The corpus's own name of the row.
        contents: The whole passage, `"Title"` on its first line when it has a title.
        title: The title without its quotes, when it is known.
        text: The passage without the title line, when it is known.
        url: Where it stands on the web, when it was found there.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    contents: str
    title: str | None = None
    text: str | None = None
    url: str | None = None


class ScoredDocument(BaseModel):
    """A passage and its score: the higher, the nearer."""

    model_config = ConfigDict(frozen=True)

    document: Document
    score: float


class RetrieveRequest(BaseModel):
    """The body of `POST /retrieve`. Unknown fields are ignored."""

    # Strict, or JSON's true would pass as a topk of 1.
    model_config = ConfigDict(strict=True)

    queries: list[Annotated[str, AfterValidator(_encodable)]]
    topk: Annotated[int | None, BeforeValidator(_whole)] = Field(
        default=None, ge=1, description="Default: the server's own setting."
    )
    return_scores: bool = False


class RetrieveResponse(BaseModel):
    """One list for each query, in order, best passage first."""

    result: list[list[ScoredDocument]] | list[list[Document]]


class ErrorResponse(BaseModel):
    """What every refusal carries."""

    detail: str | list[dict[str, object]]
