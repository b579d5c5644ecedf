// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The words of the reasons, declared once.

airpath_core::named! {
    /// Reason for a verdict that is not better, in a word for programs.
    Code {
        LateEmissions = "late_emissions": "packets that left later than their bounds",
        LateReads = "late_reads": "packets that entered later than their bounds, or may have",
        OutsideDrops = "outside_drops": "packets lost outside the model, in a queue of the kernel",
        ClockStep = "clock_step": "packets that may have entered the link at a wrong time because the wall clock was stepped",
        UnwatchedReads = "unwatched_reads": "time for which it is unknown whether the engine waited for a processor, while packets had no stamps",
        Unfinished = "unfinished": "lag of the link behind its clock at the end of the run",
        RefusedWrites = "refused_writes": "writes that the kernel refused behind the link",
        InterfaceChanged = "interface_changed": "changes that another program made to the interface of an end",
        FramesReturned = "frames_returned": "frames that two joined networks exchanged past the link",
        Demoted = "demoted": "the engine lost its real-time priority, and something was late",
        LogIncomplete = "log_incomplete": "records that the log does not hold",
        NeverStarted = "never_started": "the client's command was never started",
        BrokenOff = "broken_off": "the run did not reach its end",
        EndsWaited = "ends_waited": "time for which the commands at one end waited for a processor",
        RelaysWaited = "relays_waited": "time for which the relays to the host waited for a processor",
        Stopped = "stopped": "time for which a program of one end was stopped by a signal",
        Traced = "traced": "time for which a program of one end was traced, and the tracing program",
        SocketLosses = "socket_losses": "datagrams lost in the sockets of one end",
        ListenDrops = "listen_drops": "connection requests dropped because the queue of a listening socket was full",
        TcpReceiveDrops = "tcp_receive_drops": "segments that TCP threw away because a receive buffer or backlog was full",
        Unreadable = "unreadable": "counters that could not be read, without which a loss is not seen",
        Around = "around": "a reason of the link around a nested run, for the time of the nested run",
        AroundUnknown = "around_unknown": "the link around a nested run could not be asked",
        ClientKilled = "client_killed": "the client's command crashed, or was ended by SIGKILL",
        ServerFailed = "server_failed": "the server's command ended with an error or by a signal before the client's",
        NoPackets = "no_packets": "no packet entered the link although the client's command ran",
    }
}
