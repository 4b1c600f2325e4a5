package io.gpunvme.sim;

import io.gpunvme.nvme.spec.AdminOpcode;
import io.gpunvme.nvme.spec.IoOpcode;
import java.util.Map;

/** The command names fault rules use. */
final class FaultOpcodes {
  static final Map<String, Integer> ADMIN =
      Map.ofEntries(
          Map.entry("delete-sq", AdminOpcode.DELETE_IO_SQ),
          Map.entry("create-sq", AdminOpcode.CREATE_IO_SQ),
          Map.entry("get-log-page", AdminOpcode.GET_LOG_PAGE),
          Map.entry("delete-cq", AdminOpcode.DELETE_IO_CQ),
          Map.entry("create-cq", AdminOpcode.CREATE_IO_CQ),
          Map.entry("identify", AdminOpcode.IDENTIFY),
          Map.entry("abort", AdminOpcode.ABORT),
          Map.entry("set-features", AdminOpcode.SET_FEATURES),
          Map.entry("get-features", AdminOpcode.GET_FEATURES),
          Map.entry("async-event-request", AdminOpcode.ASYNC_EVENT_REQUEST),
          Map.entry("namespace-management", AdminOpcode.NS_MANAGEMENT),
          Map.entry("namespace-attachment", AdminOpcode.NS_ATTACHMENT),
          Map.entry("keep-alive", AdminOpcode.KEEP_ALIVE),
          Map.entry("doorbell-buffer-config", AdminOpcode.DOORBELL_BUFFER_CONFIG),
          Map.entry("format-nvm", AdminOpcode.FORMAT_NVM));

  static final Map<String, Integer> IO =
      Map.ofEntries(
          Map.entry("flush", IoOpcode.FLUSH),
          Map.entry("write", IoOpcode.WRITE),
          Map.entry("read", IoOpcode.READ),
          Map.entry("write-uncorrectable", IoOpcode.WRITE_UNCORRECTABLE),
          Map.entry("compare", IoOpcode.COMPARE),
          Map.entry("write-zeroes", IoOpcode.WRITE_ZEROES),
          Map.entry("dsm", IoOpcode.DATASET_MANAGEMENT),
          Map.entry("verify", IoOpcode.VERIFY),
          Map.entry("copy", IoOpcode.COPY));

  private FaultOpcodes() {}
}
