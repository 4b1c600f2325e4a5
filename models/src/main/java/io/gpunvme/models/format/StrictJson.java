package io.gpunvme.models.format;

import com.google.gson.Strictness;
import com.google.gson.stream.JsonReader;
import com.google.gson.stream.JsonToken;
import com.google.gson.stream.MalformedJsonException;
import io.gpunvme.base.Printable;
import io.gpunvme.base.Reason;
import io.gpunvme.models.format.FormatException.Kind;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;
import java.util.HashSet;
import java.util.Set;

/**
 * Reads JSON of RFC 8259, in strict UTF-8, from a stream that is never held whole. Every mistake is
 * a {@link FormatException}. Gson's strict mode checks the syntax; this checks repeated names,
 * fractions and depth.
 */
public final class StrictJson {
  /** What serde_json, the reference's parser, takes. */
  private static final int DEEPEST = 127;

  private static final int LONGEST_NUMBER = 19;

  private final String file;
  private final JsonReader json;

  /** Handles a member of an object; it must read the value. */
  public interface Member {
    /** Reads the value. */
    void read(String name) throws IOException;
  }

  /** Reads a piece of JSON. */
  public interface Body {
    /** Reads it. */
    void read() throws IOException;
  }

  /**
   * A reader. For one thread.
   *
   * @param file its name in messages
   * @param in read once, in pieces; the caller closes it
   */
  public StrictJson(String file, InputStream in) {
    this.file = file;
    this.json =
        new JsonReader(
            new InputStreamReader(
                in,
                StandardCharsets.UTF_8
                    .newDecoder()
                    .onMalformedInput(CodingErrorAction.REPORT)
                    .onUnmappableCharacter(CodingErrorAction.REPORT)));
    json.setStrictness(Strictness.STRICT);
    json.setNestingLimit(DEEPEST);
  }

  /**
   * Reads the document's one object.
   *
   * @throws FormatException if the body cannot read it, or something follows it
   * @throws UncheckedIOException if the stream fails
   */
  public void document(Body body) {
    try {
      body.read();
      if (json.peek() != JsonToken.END_DOCUMENT) {
        throw corrupt("something follows the JSON object");
      }
    } catch (CharacterCodingException e) {
      throw FormatException.of(Kind.CORRUPT, file, "the JSON is not valid UTF-8" + after());
    } catch (EOFException e) {
      throw FormatException.of(Kind.CORRUPT, file, "the JSON ends too early" + after());
    } catch (MalformedJsonException | NumberFormatException | IllegalStateException e) {
      throw FormatException.of(
          Kind.CORRUPT,
          file,
          "it is not valid JSON" + after() + ": " + Printable.quote(Reason.ofJson(e.getMessage())));
    } catch (IOException e) {
      throw new UncheckedIOException(Reason.of(e), e);
    }
  }

  /** Reads an object; the same name twice is an error. */
  public void object(Member member) throws IOException {
    expect(JsonToken.BEGIN_OBJECT, "an object");
    json.beginObject();
    Set<String> names = new HashSet<>();
    while (json.hasNext()) {
      String name = json.nextName();
      if (!names.add(name)) {
        throw corrupt(
            "'" + Printable.quote(name) + "' is there twice; which one counts is undefined");
      }
      member.read(name);
    }
    json.endObject();
  }

  /** Reads an array. */
  public void array(Body item) throws IOException {
    expect(JsonToken.BEGIN_ARRAY, "an array");
    json.beginArray();
    while (json.hasNext()) {
      item.read();
    }
    json.endArray();
  }

  /** Reads text. */
  public String text() throws IOException {
    expect(JsonToken.STRING, "text");
    return json.nextString();
  }

  /** Reads a whole number from 0 to {@link Long#MAX_VALUE}. */
  public long whole() throws IOException {
    expect(JsonToken.NUMBER, "a whole number");
    String number = json.nextString();
    long value = 0;
    for (int i = 0; i < number.length(); i++) {
      int digit = number.charAt(i) - '0';
      if (digit < 0 || digit > 9 || i >= LONGEST_NUMBER) {
        throw corrupt(
            "a whole number from 0 to 2^63 - 1 is expected, not " + Printable.quote(number));
      }
      value = value * 10 + digit;
    }
    if (value < 0) {
      throw corrupt(
          "a whole number from 0 to 2^63 - 1 is expected, not " + Printable.quote(number));
    }
    return value;
  }

  /** A text, number or truth value as text; empty for what is none of these and is left out. */
  String plain() throws IOException {
    return switch (json.peek()) {
      case STRING -> text();
      case NUMBER -> json.nextString();
      case BOOLEAN -> Boolean.toString(json.nextBoolean());
      default -> {
        skip();
        yield "";
      }
    };
  }

  /** Skips a value, but checks its syntax. */
  public void skip() throws IOException {
    switch (json.peek()) {
      case BEGIN_OBJECT -> {
        json.beginObject();
        while (json.hasNext()) {
          String _ = json.nextName();
          skip();
        }
        json.endObject();
      }
      case BEGIN_ARRAY -> array(this::skip);
      case STRING -> {
        // Not skipped: control characters are looked for here only.
        String _ = json.nextString();
      }
      case NUMBER, BOOLEAN -> json.skipValue();
      case NULL -> json.nextNull();
      default -> throw corrupt("a value is missing");
    }
  }

  /** A failure at the current place. */
  public FormatException corrupt(String what) {
    return FormatException.of(Kind.CORRUPT, file, what + after());
  }

  private void expect(JsonToken token, String what) throws IOException {
    if (json.peek() != token) {
      throw corrupt(what + " is expected");
    }
  }

  private String after() {
    return " (near " + Printable.quote(json.getPath()) + ")";
  }
}
