package io.gpunvme.sim;

import static io.gpunvme.sim.MalformedRow.nothing;
import static io.gpunvme.sim.MalformedRow.nsid;
import static io.gpunvme.sim.MalformedRow.opcode;
import static io.gpunvme.sim.MalformedRow.or;
import static io.gpunvme.sim.MalformedRow.prp1;
import static io.gpunvme.sim.MalformedRow.prp2;
import static io.gpunvme.sim.MalformedRow.row;
import static io.gpunvme.sim.MalformedRow.set;
import static io.gpunvme.sim.MalformedRow.shiftPrp1;

import io.gpunvme.nvme.spec.AdminOpcode;
import io.gpunvme.nvme.spec.Cns;
import io.gpunvme.nvme.spec.IdentifyNamespace;
import io.gpunvme.nvme.spec.LogId;
import io.gpunvme.nvme.spec.StatusCode;
import io.gpunvme.nvme.spec.Vs;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** Rows about the meaning of admin commands' fields. */
final class MalformedAdminRows {
  private static final StatusCode FIELD = StatusCode.INVALID_FIELD;
  private static final StatusCode NAMESPACE = StatusCode.INVALID_NAMESPACE_OR_FORMAT;
  private static final StatusCode QID = StatusCode.INVALID_QUEUE_IDENTIFIER;
  private static final StatusCode SIZE = StatusCode.INVALID_QUEUE_SIZE;
  private static final StatusCode OFFSET = StatusCode.PRP_OFFSET_INVALID;
  private static final StatusCode TRANSFER = StatusCode.DATA_TRANSFER_ERROR;
  private static final String NSIDS = "Base 2.0, 3.2.1";

  private MalformedAdminRows() {}

  static Stream<MalformedRow> rows() {
    return Stream.of(
            opcodes(),
            completionQueues(),
            submissionQueues(),
            otherQueueCommands(),
            doorbells(),
            identify(),
            logs(),
            creation(),
            attachment(),
            format())
        .flatMap(List::stream);
  }

  private static List<MalformedRow> opcodes() {
    int[] unknown = {
      0x03,
      0x07,
      0x0B,
      0x0E,
      AdminOpcode.FIRMWARE_COMMIT,
      AdminOpcode.FIRMWARE_DOWNLOAD,
      AdminOpcode.DEVICE_SELF_TEST,
      AdminOpcode.DIRECTIVE_SEND,
      AdminOpcode.DIRECTIVE_RECEIVE,
      AdminOpcode.VIRTUALIZATION_MANAGEMENT,
      AdminOpcode.NVME_MI_SEND,
      AdminOpcode.LOCKDOWN,
      AdminOpcode.FABRICS,
      AdminOpcode.SECURITY_SEND,
      AdminOpcode.SECURITY_RECEIVE,
      AdminOpcode.SANITIZE,
      AdminOpcode.GET_LBA_STATUS,
      0xC0,
      0xFF
    };
    Stream<MalformedRow> never =
        IntStream.of(unknown)
            .mapToObj(
                op ->
                    row(
                            Example.KEEP_ALIVE,
                            "opcode %02Xh".formatted(op),
                            opcode(op),
                            StatusCode.INVALID_OPCODE)
                        .in("Base 2.0, 5"));
    Stream<MalformedRow> off =
        Stream.of(
            row(Example.KEEP_ALIVE, "KAS = 0", nothing(), StatusCode.INVALID_OPCODE)
                .with(b -> b.keepAlive(false)),
            row(Example.DOORBELL_BUFFER, "OACS bit 8 = 0", nothing(), StatusCode.INVALID_OPCODE)
                .with(b -> b.dbbuf(false)),
            row(Example.CREATE_NAMESPACE, "OACS bit 3 = 0", nothing(), StatusCode.INVALID_OPCODE)
                .with(b -> b.namespaceManagement(false)));
    return Stream.concat(never, off).toList();
  }

  private static List<MalformedRow> completionQueues() {
    Example cq = Example.CREATE_CQ;
    int size = 7 << 16;
    return List.of(
        row(cq, "QID 0", set(10, size), QID),
        row(cq, "QID in use", set(10, size | 1), QID),
        row(cq, "QID beyond what was granted", set(10, size | CommandLab.QUEUES + 1), QID),
        row(cq, "QID FFFFh", set(10, size | 0xFFFF), QID),
        row(cq, "QSIZE 0", set(10, 2), SIZE),
        row(cq, "QSIZE beyond MQES", set(10, 2 | CommandLab.MQES + 1 << 16), SIZE),
        row(cq, "QSIZE FFFFh", set(10, 2 | 0xFFFF << 16), SIZE),
        row(cq, "PC 0 although CAP.CQR", set(11, 0), FIELD),
        row(cq, "IV beyond the vectors", set(11, 3 | 4 << 16), StatusCode.INVALID_INTERRUPT_VECTOR),
        row(cq, "IV FFFFh", set(11, 3 | 0xFFFF << 16), StatusCode.INVALID_INTERRUPT_VECTOR),
        row(cq, "PRP1 not page aligned", shiftPrp1(64), OFFSET),
        row(cq, "PRP1 misaligned", shiftPrp1(1), OFFSET),
        row(cq, "PRP1 not mapped", prp1(CommandLab.NOWHERE), TRANSFER).retryable());
  }

  private static List<MalformedRow> submissionQueues() {
    Example sq = Example.CREATE_SQ;
    int size = 7 << 16;
    return List.of(
        row(sq, "QID 0", set(10, size), QID),
        row(sq, "QID in use", set(10, size | 1), QID),
        row(sq, "QID beyond what was granted", set(10, size | CommandLab.QUEUES + 1), QID),
        row(sq, "QSIZE 0", set(10, 2), SIZE),
        row(sq, "QSIZE beyond MQES", set(10, 2 | CommandLab.MQES + 1 << 16), SIZE),
        row(sq, "CQID 0", set(11, 1), QID),
        row(sq, "CQID beyond what was granted", set(11, 1 | CommandLab.QUEUES + 1 << 16), QID),
        row(sq, "CQID not created", set(11, 1 | 3 << 16), StatusCode.COMPLETION_QUEUE_INVALID),
        row(sq, "PC 0 although CAP.CQR", set(11, 1 << 16), FIELD),
        row(sq, "PRP1 not page aligned", shiftPrp1(2048), OFFSET),
        row(sq, "PRP1 not mapped", prp1(CommandLab.NOWHERE), TRANSFER).retryable());
  }

  private static List<MalformedRow> otherQueueCommands() {
    return List.of(
        row(Example.DELETE_SQ, "QID 0", set(10, 0), QID),
        row(Example.DELETE_SQ, "QID not created", set(10, 2), QID),
        row(Example.DELETE_SQ, "QID FFFFh", set(10, 0xFFFF), QID),
        row(Example.DELETE_CQ, "QID 0", set(10, 0), QID),
        row(Example.DELETE_CQ, "QID not created", set(10, 3), QID),
        row(Example.DELETE_CQ, "QID FFFFh", set(10, 0xFFFF), QID),
        row(
            Example.DELETE_CQ,
            "still used by an SQ",
            set(10, 1),
            StatusCode.INVALID_QUEUE_DELETION),
        row(
            Example.ASYNC_EVENT_REQUEST,
            "more than AERL",
            (lab, s) -> {
              for (int i = 0; i < 2; i++) {
                lab.host.admin.push(lab.asyncEventRequest());
              }
              lab.host.admin.ring();
              lab.host.settle();
            },
            StatusCode.ASYNC_EVENT_REQUEST_LIMIT_EXCEEDED));
  }

  private static List<MalformedRow> doorbells() {
    Example e = Example.DOORBELL_BUFFER;
    return List.of(
        row(e, "PRP1 not page aligned", shiftPrp1(64), FIELD),
        row(e, "PRP2 not page aligned", or(8, 4), FIELD),
        row(e, "PRP1 not mapped", prp1(CommandLab.NOWHERE), TRANSFER).retryable(),
        row(e, "PRP2 not mapped", prp2(CommandLab.NOWHERE), TRANSFER).retryable());
  }

  private static List<MalformedRow> identify() {
    Example ns = Example.IDENTIFY_NAMESPACE;
    Example active = Example.IDENTIFY_ACTIVE;
    Example ids = Example.IDENTIFY_DESCRIPTORS;
    return List.of(
        row(Example.IDENTIFY, "CNS unknown", set(10, 0xFE), FIELD),
        row(Example.IDENTIFY, "CNS 04h, no NVM sets", set(10, Cns.NVM_SET_LIST), FIELD),
        row(Example.IDENTIFY, "CNS 06h before 2.0", set(10, Cns.CSI_CONTROLLER), FIELD),
        row(ns, "CNS 05h before 2.0", set(10, Cns.CSI_NAMESPACE), FIELD),
        row(ns, "CNS 08h before 2.0", set(10, Cns.CSI_INDEPENDENT_NAMESPACE), FIELD),
        row(ns, "CNS 05h, CSI unknown", set(10, Cns.CSI_NAMESPACE).and(set(11, 2 << 24)), FIELD)
            .with(b -> b.version(Vs.V2_0)),
        row(ns, "CNS 08h inactive", set(10, 8).and(nsid(CommandLab.INACTIVE)), FIELD)
            .with(b -> b.version(Vs.V2_0)),
        row(Example.IDENTIFY, "CNS 07h, CAP.CSS bit 6 is 0", set(10, 7), FIELD)
            .with(b -> b.version(Vs.V2_0)),
        row(Example.IDENTIFY, "CNS 10h without management", set(10, 0x10), FIELD)
            .with(b -> b.namespaceManagement(false)),
        row(Example.IDENTIFY, "CNS 13h without management", set(10, 0x13), FIELD)
            .with(b -> b.namespaceManagement(false)),
        row(ns, "NSID 0", nsid(0), NAMESPACE),
        row(ns, "NSID beyond NN", nsid(CommandLab.NN + 1), NAMESPACE),
        row(ns, "NSID FFFFFFFEh", nsid(-2), NAMESPACE),
        row(ns, "NSID all without management", nsid(-1), NAMESPACE)
            .with(b -> b.namespaceManagement(false)),
        row(active, "NSID FFFFFFFEh", nsid(-2), NAMESPACE),
        row(active, "NSID FFFFFFFFh", nsid(-1), NAMESPACE),
        row(ids, "NSID 0", nsid(0), NAMESPACE),
        row(ids, "NSID beyond NN", nsid(CommandLab.NN + 1), NAMESPACE),
        row(ids, "NSID inactive", nsid(CommandLab.INACTIVE), FIELD),
        row(Example.IDENTIFY_ALLOCATED, "NSID 0", nsid(0), NAMESPACE),
        row(Example.IDENTIFY_ALLOCATED, "NSID all", nsid(-1), NAMESPACE),
        row(Example.IDENTIFY_ATTACHED, "NSID beyond NN", nsid(CommandLab.NN + 1), NAMESPACE),
        row(Example.IDENTIFY_ATTACHED, "NSID unallocated", nsid(CommandLab.INACTIVE), FIELD));
  }

  private static List<MalformedRow> logs() {
    Example log = Example.GET_LOG_PAGE;
    Example smart = Example.LOG_SMART;
    int dwords = 15 << 16;
    StatusCode page = StatusCode.INVALID_LOG_PAGE;
    return List.of(
        row(log, "LID unknown", set(10, 0x7F | dwords), page),
        row(log, "LID 00h before 2.0", set(10, LogId.SUPPORTED | dwords), page),
        row(log, "LID 12h before 2.0", set(10, LogId.FEATURE_EFFECTS | dwords), page),
        row(log, "LID 06h, no self-test", set(10, LogId.DEVICE_SELF_TEST | dwords), page),
        row(log, "LID C0h, vendor specific", set(10, 0xC0 | dwords), page),
        row(smart, "LPOL not dword aligned", set(12, 2), FIELD),
        row(smart, "LPOL beyond the page", set(12, 516), FIELD),
        row(smart, "LPOU beyond the page", set(13, 1), FIELD),
        row(smart, "LPOU FFFFFFFFh", set(12, -4).and(set(13, -1)), FIELD),
        row(smart, "NUMD beyond MDTS", set(10, LogId.SMART | 0x4000 << 16), FIELD)
            .in("Base 2.0, 5.17.2.1 (MDTS)"),
        row(smart, "NUMDU beyond MDTS", set(11, 0xFFFF), FIELD).in("Base 2.0, 5.17.2.1 (MDTS)"),
        row(smart, "NSID of one namespace", nsid(1), FIELD),
        row(smart, "NSID beyond NN", nsid(CommandLab.NN + 1), NAMESPACE).in(NSIDS));
  }

  private static MalformedRow.Spoil wanted(Consumer<IdentifyNamespace> change) {
    return (lab, s) -> change.accept(new IdentifyNamespace(lab.memory()));
  }

  private static List<MalformedRow> creation() {
    Example create = Example.CREATE_NAMESPACE;
    Example delete = Example.DELETE_NAMESPACE;
    return List.of(
        row(create, "SEL reserved", set(10, 2), FIELD),
        row(create, "NSID not 0", nsid(1), FIELD),
        row(create, "CSI unknown", set(11, 1 << 24), FIELD),
        row(
            create,
            "FLBAS no such format",
            wanted(d -> d.set(IdentifyNamespace.FLBAS, 8)),
            StatusCode.INVALID_FORMAT),
        row(
            create,
            "FLBAS extended metadata",
            wanted(d -> d.set(IdentifyNamespace.FLBAS, 16)),
            FIELD),
        row(
            create,
            "DPS without metadata",
            wanted(d -> d.set(IdentifyNamespace.DPS, 1)),
            StatusCode.INVALID_FORMAT),
        row(create, "NMIC shared", wanted(d -> d.set(IdentifyNamespace.NMIC, 1)), FIELD),
        row(create, "NSZE 0", wanted(d -> d.set(IdentifyNamespace.NSZE, 0)), FIELD),
        row(
            create,
            "NCAP below NSZE",
            wanted(d -> d.set(IdentifyNamespace.NCAP, 7)),
            StatusCode.THIN_PROVISIONING_NOT_SUPPORTED),
        row(
            create,
            "NSZE beyond UNVMCAP",
            wanted(
                d -> d.set(IdentifyNamespace.NSZE, 1L << 40).set(IdentifyNamespace.NCAP, 1L << 40)),
            StatusCode.NAMESPACE_INSUFFICIENT_CAPACITY),
        row(
            create,
            "NSZE 2^63 blocks",
            wanted(
                d -> d.set(IdentifyNamespace.NSZE, 1L << 63).set(IdentifyNamespace.NCAP, 1L << 63)),
            StatusCode.NAMESPACE_INSUFFICIENT_CAPACITY),
        row(
            create,
            "no NSID left",
            (lab, s) -> {
              lab.host.adminOk(lab.createNamespace());
              lab.host.adminOk(lab.createNamespace());
            },
            StatusCode.NAMESPACE_IDENTIFIER_UNAVAILABLE),
        row(delete, "NSID 0", nsid(0), NAMESPACE),
        row(delete, "NSID beyond NN", nsid(CommandLab.NN + 1), NAMESPACE),
        row(delete, "NSID unallocated", nsid(CommandLab.INACTIVE), FIELD));
  }

  private static MalformedRow.Spoil listWord(long offset, int value) {
    return (lab, s) -> lab.memory().set(ValueLayout.JAVA_SHORT, offset, (short) value);
  }

  private static List<MalformedRow> attachment() {
    Example attach = Example.ATTACH;
    StatusCode list = StatusCode.CONTROLLER_LIST_INVALID;
    return List.of(
        row(attach, "SEL reserved", set(10, 2), FIELD),
        row(attach, "NSID 0", nsid(0), NAMESPACE),
        row(attach, "NSID beyond NN", nsid(CommandLab.NN + 1), NAMESPACE),
        row(attach, "NSID all", nsid(-1), FIELD),
        row(attach, "NSID unallocated", nsid(CommandLab.INACTIVE), FIELD),
        row(attach, "list empty", listWord(0, 0), list),
        row(attach, "list of two", listWord(0, 2), list),
        row(attach, "list too long", listWord(0, -1), list),
        row(attach, "unknown CNTLID", listWord(2, 9), list),
        row(attach, "already attached", nsid(2), StatusCode.NAMESPACE_ALREADY_ATTACHED),
        row(
            Example.DETACH,
            "not attached",
            (lab, s) -> lab.host.adminOk(lab.attach(1, 1)),
            StatusCode.NAMESPACE_NOT_ATTACHED));
  }

  private static List<MalformedRow> format() {
    Example e = Example.FORMAT;
    return List.of(
        row(e, "LBAF not in the list", set(10, 8), StatusCode.INVALID_FORMAT),
        row(e, "LBAF 15", set(10, 15), StatusCode.INVALID_FORMAT),
        row(e, "PI without metadata", set(10, 1 << 5), StatusCode.INVALID_FORMAT),
        row(e, "SES cryptographic erase", set(10, 2 << 9), FIELD),
        row(e, "SES reserved", set(10, 7 << 9), FIELD),
        row(e, "NSID 0", nsid(0), NAMESPACE).in(NSIDS),
        row(e, "NSID beyond NN", nsid(CommandLab.NN + 1), NAMESPACE).in(NSIDS),
        row(e, "NSID inactive", nsid(CommandLab.INACTIVE), FIELD).in("Base 2.0, 3.3.3.1"),
        row(e, "write protected", nsid(2), StatusCode.NAMESPACE_WRITE_PROTECTED),
        row(e, "all, one write protected", nsid(-1), StatusCode.NAMESPACE_WRITE_PROTECTED),
        row(
                e,
                "size is not a multiple of the new block",
                set(10, 1).and(nsid(3)),
                StatusCode.INVALID_FORMAT)
            .with(b -> b.namespace(NamespaceConfig.ram(9 * 512, 512))));
  }
}
