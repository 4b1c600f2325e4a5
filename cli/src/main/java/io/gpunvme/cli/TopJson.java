package io.gpunvme.cli;

import io.gpunvme.tools.top.TopController;
import io.gpunvme.tools.top.TopLook;
import io.gpunvme.tools.top.TopQueue;
import io.gpunvme.tools.top.TopRates;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** A round of {@code gpunvme top} for {@code --json}; null is what nobody knows. */
final class TopJson {
  private static final double GIGA = 1e9;

  private TopJson() {}

  static Map<String, Object> of(Instant time, TopLook look) {
    Map<String, Object> round = new LinkedHashMap<>();
    round.put("time", time.toString());
    round.put("devices", look.controllers().stream().map(TopJson::controller).toList());
    round.put("totals", totals(look.controllers()));
    round.put("not_driven", look.undriven());
    round.put("problems", look.problems());
    return round;
  }

  private static Map<String, @Nullable Object> controller(TopController controller) {
    Map<String, @Nullable Object> one = new LinkedHashMap<>();
    one.put("pid", controller.pid());
    one.put("program", controller.program());
    one.put("side", controller.side());
    one.put("address", controller.device());
    one.put("model", controller.model());
    put(one, controller.rates());
    one.put("recoveries", controller.recoveries());
    one.put("queues", controller.queues().stream().map(TopJson::queue).toList());
    return one;
  }

  private static Map<String, @Nullable Object> queue(TopQueue queue) {
    Map<String, @Nullable Object> one = new LinkedHashMap<>();
    one.put("qid", queue.queue());
    one.put("initiator", queue.initiator());
    put(one, queue.rates());
    return one;
  }

  private static void put(Map<String, @Nullable Object> one, TopRates rates) {
    one.put("commands_per_s", rates.commandsPerSecond());
    one.put("gb_per_s", giga(rates.bytesPerSecond()));
    one.put("read_gb_per_s", giga(rates.readBytesPerSecond()));
    one.put("written_gb_per_s", giga(rates.writtenBytesPerSecond()));
    one.put("latency_mean_us", rates.latencyMicros());
    one.put("outstanding", rates.outstanding());
    one.put("retries", rates.retries());
  }

  private static @Nullable Double giga(@Nullable Double bytes) {
    return bytes == null ? null : (Double) (bytes / GIGA);
  }

  /** Of those that are driven: the other side of the same commands would count them twice. */
  private static Map<String, Object> totals(List<TopController> controllers) {
    List<TopRates> driven =
        controllers.stream().filter(TopController::isDriven).map(TopController::rates).toList();
    Map<String, Object> totals = new LinkedHashMap<>();
    totals.put("devices", driven.size());
    totals.put(
        "commands_per_s", driven.stream().mapToDouble(r -> or0(r.commandsPerSecond())).sum());
    totals.put("gb_per_s", driven.stream().mapToDouble(r -> or0(r.bytesPerSecond())).sum() / GIGA);
    return totals;
  }

  private static double or0(@Nullable Double rate) {
    return rate == null ? 0 : rate;
  }
}
