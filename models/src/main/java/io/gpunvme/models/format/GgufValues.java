package io.gpunvme.models.format;

import io.gpunvme.base.Printable;
import io.gpunvme.models.format.FormatException.Kind;
import io.gpunvme.storage.fs.BlockReader;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.function.Consumer;

/** Reads values of a GGUF file's metadata from where a cursor is. */
final class GgufValues {
  /** Longest text, which the reference limits to 1 GiB. */
  static final int LONGEST_TEXT = 64 << 20;

  /** Arrays in arrays in arrays: nobody writes more than one. */
  private static final int DEEPEST = 8;

  private static final int STRING_LENGTH = 8;
  private static final int ARRAY_HEAD = 4 + 8;

  private final BlockReader reader;
  private final ByteCursor in;
  private final HeapRoom room;

  /** Bytes of text that may still be kept, so that a broken file cannot ask for all memory. */
  private long textLeft = LONGEST_TEXT;

  /**
   * @param room taken from for all text and names that are kept
   */
  GgufValues(BlockReader reader, ByteCursor in, HeapRoom room) {
    this.reader = reader;
    this.in = in;
    this.room = room;
  }

  /** A key or a tensor's name, which must be UTF-8. */
  String name(int longest, String what) {
    long at = in.position();
    long length = in.i64(what);
    if (length < 0 || length > longest) {
      throw corrupt(
          at,
          "%s of %s bytes, which is outside 0..%d"
              .formatted(what, Long.toUnsignedString(length), longest));
    }
    room.take(length);
    byte[] bytes = in.bytes((int) length, what);
    try {
      return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes)).toString();
    } catch (CharacterCodingException e) {
      throw corrupt(at, what + " that is not UTF-8");
    }
  }

  /** A type and a value of it. */
  MetaValue value(String key) {
    return value(type(), 0, "the value of '" + Printable.quote(key) + "'");
  }

  private ValueType type() {
    long at = in.position();
    long id = in.u32("a value's type");
    return ValueType.ofGguf(id)
        .orElseThrow(() -> corrupt(at, "a value of type %d, which does not exist".formatted(id)));
  }

  private MetaValue value(ValueType type, int depth, String what) {
    return switch (type) {
      case U8 -> new MetaValue.Whole(type, in.u8(what));
      case I8 -> new MetaValue.Whole(type, (byte) in.u8(what));
      case U16 -> new MetaValue.Whole(type, in.u16(what));
      case I16 -> new MetaValue.Whole(type, (short) in.u16(what));
      case U32 -> new MetaValue.Whole(type, in.u32(what));
      case I32 -> new MetaValue.Whole(type, (int) in.u32(what));
      case U64, I64 -> new MetaValue.Whole(type, in.i64(what));
      case F32 -> new MetaValue.Real(type, Float.intBitsToFloat((int) in.u32(what)));
      case F64 -> new MetaValue.Real(type, Double.longBitsToDouble(in.i64(what)));
      case BOOL -> flag(what);
      case STRING -> text(what);
      case ARRAY -> items(depth, what);
    };
  }

  private MetaValue flag(String what) {
    long at = in.position();
    int value = in.u8(what);
    if (value > 1) {
      throw corrupt(at, "%s is a truth value of %d, not 0 or 1".formatted(what, value));
    }
    return new MetaValue.Flag(value == 1);
  }

  private MetaValue text(String what) {
    long at = in.position();
    long length = textLength(what);
    if (length > textLeft) {
      throw FormatException.at(
          Kind.UNSUPPORTED,
          reader.name(),
          at,
          "%s of %d bytes: more than %d bytes of text".formatted(what, length, LONGEST_TEXT));
    }
    textLeft -= length;
    room.take(length);
    return new MetaValue.Text(new String(in.bytes((int) length, what), StandardCharsets.UTF_8));
  }

  private long textLength(String what) {
    long at = in.position();
    long length = in.i64(what);
    if (length < 0 || length > in.remaining()) {
      throw FormatException.at(
          Kind.TRUNCATED,
          reader.name(),
          at,
          "%s of %s bytes passes the end of the file"
              .formatted(what, Long.toUnsignedString(length)));
    }
    return length;
  }

  /** Finds where an array ends, and checks that everything up to there can be read later. */
  private MetaValue items(int depth, String what) {
    long at = in.position();
    if (depth == DEEPEST) {
      throw FormatException.at(
          Kind.UNSUPPORTED,
          reader.name(),
          at,
          "%s has arrays in arrays, %d deep".formatted(what, DEEPEST));
    }
    ValueType type = type();
    long count = in.i64(what);
    int smallest =
        switch (type) {
          case STRING -> STRING_LENGTH;
          case ARRAY -> ARRAY_HEAD;
          default -> type.bytes();
        };
    if (count < 0 || count > in.remaining() / smallest) {
      throw FormatException.at(
          Kind.TRUNCATED,
          reader.name(),
          at,
          "%s of %s items passes the end of the file"
              .formatted(what, Long.toUnsignedString(count)));
    }
    long start = in.position();
    switch (type) {
      case STRING -> {
        for (long i = 0; i < count; i++) {
          in.skip(textLength(what), what);
        }
      }
      case ARRAY -> {
        for (long i = 0; i < count; i++) {
          items(depth + 1, what);
        }
      }
      default -> in.skip(count * type.bytes(), what);
    }
    return new Items(reader, type, count, start, in.position(), depth + 1);
  }

  private FormatException corrupt(long at, String what) {
    return FormatException.at(Kind.CORRUPT, reader.name(), at, what);
  }

  /** An array that stayed in the file. */
  private record Items(
      BlockReader reader, ValueType elementType, long count, long start, long end, int depth)
      implements MetaValue.Items {
    @Override
    public void forFirst(long most, Consumer<MetaValue> to) {
      ByteCursor in = new ByteCursor(reader, start, end);
      for (long i = 0; i < Math.min(most, count); i++) {
        // Each item alone; together they may be more than memory holds.
        HeapRoom room = HeapRoom.here(reader.name());
        to.accept(new GgufValues(reader, in, room).value(elementType, depth, "an item"));
      }
    }

    @Override
    public String toString() {
      return "%d of %s".formatted(count, elementType);
    }
  }
}
