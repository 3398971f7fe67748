//! konnectivity's messages, as `konnectivity-client/proto/client/client.proto` numbers their
//! fields, in gRPC's framing.

use anyhow::{Context as _, Result, ensure};
use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use prost::Message;

const DIAL_REQUEST: i32 = 0;
const CLOSE_REQUEST: i32 = 2;
const DATA: i32 = 4;

/// Compression flag and length (gRPC over HTTP/2, "Length-Prefixed-Message").
const PREFIX: usize = 5;
/// gRPC's own limit of a received message.
const LONGEST: usize = 4 << 20;

#[derive(Clone, PartialEq, Message)]
pub struct Packet {
    #[prost(int32, tag = "1")]
    kind: i32,
    #[prost(oneof = "Payload", tags = "2, 3, 4, 5, 6")]
    pub payload: Option<Payload>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Payload {
    #[prost(message, tag = "2")]
    DialRequest(DialRequest),
    #[prost(message, tag = "3")]
    DialResponse(DialResponse),
    #[prost(message, tag = "4")]
    Data(Data),
    #[prost(message, tag = "5")]
    CloseRequest(CloseRequest),
    #[prost(message, tag = "6")]
    CloseResponse(CloseResponse),
}

#[derive(Clone, PartialEq, Message)]
pub struct DialRequest {
    #[prost(string, tag = "1")]
    protocol: String,
    #[prost(string, tag = "2")]
    address: String,
    #[prost(int64, tag = "3")]
    random: i64,
}

#[derive(Clone, PartialEq, Message)]
pub struct DialResponse {
    #[prost(string, tag = "1")]
    pub error: String,
    #[prost(int64, tag = "2")]
    pub connection: i64,
    #[prost(int64, tag = "3")]
    random: i64,
}

#[derive(Clone, PartialEq, Message)]
pub struct Data {
    #[prost(int64, tag = "1")]
    connection: i64,
    #[prost(string, tag = "2")]
    error: String,
    #[prost(bytes = "bytes", tag = "3")]
    pub bytes: Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub struct CloseRequest {
    #[prost(int64, tag = "1")]
    connection: i64,
}

#[derive(Clone, PartialEq, Message)]
pub struct CloseResponse {
    #[prost(string, tag = "1")]
    error: String,
    #[prost(int64, tag = "2")]
    connection: i64,
}

// === impl Packet ===

impl Packet {
    pub fn dial(address: &str, random: i64) -> Self {
        let request = DialRequest { protocol: "tcp".to_owned(), address: address.to_owned(), random };
        Self { kind: DIAL_REQUEST, payload: Some(Payload::DialRequest(request)) }
    }

    pub fn data(connection: i64, data: &[u8]) -> Self {
        let data = Data { connection, error: String::new(), bytes: Bytes::copy_from_slice(data) };
        Self { kind: DATA, payload: Some(Payload::Data(data)) }
    }

    pub fn close(connection: i64) -> Self {
        Self { kind: CLOSE_REQUEST, payload: Some(Payload::CloseRequest(CloseRequest { connection })) }
    }

    /// Encodes the packet as one message of a gRPC stream.
    pub fn framed(&self) -> Result<BytesMut> {
        let length = self.encoded_len();
        let mut message = BytesMut::with_capacity(PREFIX + length);
        message.put_u8(0);
        message.put_u32(u32::try_from(length)?);
        self.encode(&mut message)?;
        Ok(message)
    }

    /// Takes a message off the front of `received`; none if there is not all of it yet.
    pub fn unframe(received: &mut BytesMut) -> Result<Option<Self>> {
        let Some(mut prefix) = received.get(..PREFIX) else { return Ok(None) };
        ensure!(prefix.get_u8() == 0, "a compressed message");
        let length = prefix.get_u32() as usize;
        ensure!(length <= LONGEST, "a message of {length} bytes");
        if received.len() < PREFIX + length {
            return Ok(None);
        }
        received.advance(PREFIX);
        let message = received.split_to(length).freeze();
        Self::decode(message).context("not a packet").map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes as protoc's encoder gives them for these messages.
    #[test]
    fn what_goes_over_the_wire_is_protobuf_in_grpcs_frame() {
        let dial = Packet::dial("a:1", 5).framed().unwrap();
        assert_eq!(&dial[..], b"\0\0\0\0\x0e\x12\x0c\x0a\x03tcp\x12\x03a:1\x18\x05");
        let data = Packet::data(3, b"xy").framed().unwrap();
        assert_eq!(&data[..], b"\0\0\0\0\x0a\x08\x04\x22\x06\x08\x03\x1a\x02xy");
    }

    #[test]
    fn packets_come_whole_or_not_yet() {
        let two = [Packet::data(3, b"xy").framed().unwrap(), Packet::close(3).framed().unwrap()].concat();
        let mut received = BytesMut::new();
        let mut packets = Vec::new();
        for byte in two {
            received.put_u8(byte);
            packets.extend(Packet::unframe(&mut received).unwrap());
        }
        assert_eq!(packets, [Packet::data(3, b"xy"), Packet::close(3)]);
    }

    #[test]
    fn nonsense_is_refused() {
        for bad in [&b"\x01\0\0\0\0"[..], b"\0\xff\xff\xff\xff", b"\0\0\0\0\x01\xff"] {
            assert!(Packet::unframe(&mut BytesMut::from(bad)).is_err(), "{bad:?}");
        }
    }
}
