package io.gpunvme.storage.fs.ext4;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.CharsetDecoder;
import java.nio.charset.CoderResult;
import java.nio.charset.StandardCharsets;
import org.jspecify.annotations.Nullable;

/**
 * Names, which are bytes, as text. Valid UTF-8 is itself. A byte that is none becomes {@code \xHH},
 * and so does a backslash before an {@code x} and two hexadecimal digits: each name has one text,
 * and each text that was made here leads back to its name.
 */
final class Names {
  private static final int ESCAPE_LENGTH = 4;

  private Names() {}

  /** The text of a name. */
  static String text(byte[] name) {
    CharsetDecoder decoder = StandardCharsets.UTF_8.newDecoder();
    ByteBuffer in = ByteBuffer.wrap(name);
    CharBuffer out = CharBuffer.allocate(name.length + 1);
    StringBuilder text = new StringBuilder(name.length);
    while (true) {
      CoderResult result = decoder.decode(in, out, true);
      appendEscaped(text, out.flip());
      out.clear();
      if (!result.isError()) {
        return text.toString();
      }
      for (int i = 0; i < result.length(); i++) {
        text.append("\\x%02x".formatted(in.get() & 0xFF));
      }
      decoder.reset();
    }
  }

  private static void appendEscaped(StringBuilder text, CharSequence valid) {
    for (int i = 0; i < valid.length(); i++) {
      text.append(isEscape(valid, i) ? "\\x5c" : valid.subSequence(i, i + 1));
    }
  }

  /** The name of a text; null if none has it. */
  static byte @Nullable [] bytes(String text) {
    ByteArrayOutputStream name = new ByteArrayOutputStream();
    int done = 0;
    for (int i = 0; i <= text.length(); i++) {
      boolean escape = isEscape(text, i);
      if (!escape && i < text.length()) {
        continue;
      }
      byte[] valid = encode(text.substring(done, i));
      if (valid == null) {
        return null;
      }
      name.writeBytes(valid);
      if (escape) {
        name.write(Integer.parseInt(text, i + 2, i + ESCAPE_LENGTH, 16));
        done = i + ESCAPE_LENGTH;
        i = done - 1;
      }
    }
    return name.toByteArray();
  }

  private static byte @Nullable [] encode(String text) {
    try {
      ByteBuffer bytes = StandardCharsets.UTF_8.newEncoder().encode(CharBuffer.wrap(text));
      byte[] result = new byte[bytes.remaining()];
      bytes.get(result);
      return result;
    } catch (CharacterCodingException e) {
      return null; // half a surrogate pair
    }
  }

  private static boolean isEscape(CharSequence text, int at) {
    return at + ESCAPE_LENGTH <= text.length()
        && text.charAt(at) == '\\'
        && text.charAt(at + 1) == 'x'
        && isHex(text.charAt(at + 2))
        && isHex(text.charAt(at + 3));
  }

  private static boolean isHex(char c) {
    return c < 128 && Character.digit(c, 16) >= 0;
  }
}
