package io.gpunvme.nvme.vfiouser;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.JsonParser;
import com.google.gson.JsonPrimitive;
import io.gpunvme.nvme.ProtocolException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Optional;

/**
 * What one end can do, as it says in VERSION: two numbers and JSON text that ends with a NUL.
 *
 * @param major 0, or nothing that we understand
 * @param minor the lower one of both ends counts
 * @param maxDescriptors with one message, at least 1
 * @param maxTransfer bytes of data in one message, at least 4096
 * @param sleep whether it knows {@link SleepRegion}
 */
public record Capabilities(
    int major, int minor, int maxDescriptors, long maxTransfer, boolean sleep) {
  private static final long LEAST_TRANSFER = 4096;
  private static final int NUMBERS = 4;

  /** Ours. */
  public static Capabilities ours(int maxDescriptors) {
    return new Capabilities(
        Protocol.MAJOR, Protocol.MINOR, maxDescriptors, Protocol.DEFAULT_MAX_TRANSFER, true);
  }

  /**
   * Reads a payload of VERSION.
   *
   * @throws ProtocolException if it is none
   */
  public static Capabilities parse(ByteBuffer payload) {
    if (payload.remaining() < NUMBERS) {
      throw new ProtocolException("VERSION with " + payload.remaining() + " bytes");
    }
    int at = payload.position();
    int major = Short.toUnsignedInt(payload.getShort(at));
    int minor = Short.toUnsignedInt(payload.getShort(at + 2));
    int textBytes = payload.remaining() - NUMBERS;
    int descriptors = Protocol.DEFAULT_MAX_FDS;
    long transfer = Protocol.DEFAULT_MAX_TRANSFER;
    boolean sleep = false;
    if (textBytes > 0) {
      byte[] text = new byte[textBytes];
      payload.get(at + NUMBERS, text);
      if (text[textBytes - 1] != 0) {
        throw new ProtocolException("the capabilities of VERSION do not end with a NUL");
      }
      JsonObject all = object(new String(text, 0, textBytes - 1, StandardCharsets.UTF_8));
      descriptors = (int) number(all, "max_msg_fds", descriptors, 1, Integer.MAX_VALUE);
      transfer = number(all, "max_data_xfer_size", transfer, LEAST_TRANSFER, Long.MAX_VALUE);
      sleep = new JsonPrimitive(true).equals(all.get(SleepRegion.CAPABILITY));
    }
    return new Capabilities(major, minor, descriptors, transfer, sleep);
  }

  private static JsonObject object(String text) {
    try {
      JsonElement parsed = JsonParser.parseString(text);
      if (!parsed.isJsonObject()) {
        throw new ProtocolException("the capabilities of VERSION are not a JSON object");
      }
      JsonElement inner = parsed.getAsJsonObject().get("capabilities");
      return inner != null && inner.isJsonObject() ? inner.getAsJsonObject() : new JsonObject();
    } catch (JsonParseException | StackOverflowError e) {
      throw new ProtocolException("the capabilities of VERSION are not JSON");
    }
  }

  private static long number(JsonObject all, String name, long otherwise, long least, long most) {
    JsonElement value = all.get(name);
    if (value == null || value.isJsonNull()) {
      return otherwise;
    }
    Optional<Long> number = whole(value);
    if (number.isEmpty() || number.get() < least || number.get() > most) {
      throw new ProtocolException(
          "capability %s of VERSION is not a number from %d to %d".formatted(name, least, most));
    }
    return number.get();
  }

  private static Optional<Long> whole(JsonElement value) {
    if (value instanceof JsonPrimitive p && p.isNumber()) {
      try {
        return Optional.of(Long.parseLong(p.getAsString()));
      } catch (NumberFormatException e) {
        return Optional.empty();
      }
    }
    return Optional.empty();
  }

  /**
   * A payload of VERSION.
   *
   * @param maxMaps ranges of DMA at a time; 0 to say nothing about it, as a client does
   */
  public ByteBuffer payload(int maxMaps) {
    JsonObject capabilities = new JsonObject();
    capabilities.addProperty("max_msg_fds", maxDescriptors);
    capabilities.addProperty("max_data_xfer_size", maxTransfer);
    if (sleep) {
      capabilities.addProperty(SleepRegion.CAPABILITY, true);
    }
    if (maxMaps > 0) {
      capabilities.addProperty("pgsizes", 4096);
      capabilities.addProperty("max_dma_maps", maxMaps);
    }
    JsonObject all = new JsonObject();
    all.add("capabilities", capabilities);
    byte[] text = all.toString().getBytes(StandardCharsets.UTF_8);
    return Protocol.payload(NUMBERS + text.length + 1)
        .putShort((short) major)
        .putShort((short) minor)
        .put(text)
        .put((byte) 0)
        .flip();
  }
}
