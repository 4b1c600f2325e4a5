package io.gpunvme.cli;

import io.gpunvme.gpu.transfer.TransferReport;
import io.gpunvme.nvme.driver.Namespace;
import java.util.LinkedHashMap;
import java.util.Map;

/** JSON objects that several commands print. */
final class Descriptions {
  private static final double NANOS_PER_MICRO = 1000;
  static final int MEDIAN = 50;
  static final int TAIL = 99;

  private Descriptions() {}

  /** A namespace with its sizes, or the reason why it cannot be used. */
  static Map<String, Object> namespace(Namespace namespace) {
    Map<String, Object> one = new LinkedHashMap<>();
    one.put("nsid", Integer.toUnsignedLong(namespace.nsid()));
    one.put("id", namespace.uniqueId());
    one.put("usable", namespace.usable());
    if (namespace.usable()) {
      one.put("block_size", namespace.blockSize());
      one.put("blocks", namespace.blocks());
      one.put("bytes", namespace.bytes());
      one.put("write_protected", namespace.writeProtected());
    } else {
      one.put("reason", namespace.reason());
    }
    return one;
  }

  /** The way of a transfer and its rate; the caller adds the bytes. */
  static Map<String, Object> transfer(TransferReport report) {
    Map<String, Object> one = new LinkedHashMap<>();
    one.put("path", report.path());
    one.put("initiator", report.initiator());
    one.put("placement", report.placement().toString());
    one.put("queue_pairs", report.queuePairs());
    one.put("depth", report.depth());
    one.put("threads", report.threads());
    one.put("commands", report.commands());
    one.put("doorbell_writes", report.sqDoorbells() + report.cqDoorbells());
    one.put("sq_doorbell_writes", report.sqDoorbells());
    one.put("cq_doorbell_writes", report.cqDoorbells());
    one.put("commands_per_doorbell", perDoorbell(report));
    one.put("retries", report.retries());
    one.put("recoveries", report.recoveries());
    one.put("seconds", report.nanos() / 1e9);
    one.put("gb_per_s", report.gigabytesPerSecond());
    one.put("latency_p50_us", micros(report, MEDIAN));
    one.put("latency_p99_us", micros(report, TAIL));
    return one;
  }

  /** Commands for each store to a submission doorbell. */
  static double perDoorbell(TransferReport report) {
    return (double) report.commands() / Math.max(1, report.sqDoorbells());
  }

  static double micros(TransferReport report, int percentile) {
    return report.latencyNanos(percentile) / NANOS_PER_MICRO;
  }
}
