// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title The self-describing payload of every event, and a way to build it.
/// The struct layout is part of the event signature and must not change.
library EventUtils {
    struct AddressKeyValue { string key; address value; }
    struct AddressArrayKeyValue { string key; address[] value; }
    struct AddressItems { AddressKeyValue[] items; AddressArrayKeyValue[] arrayItems; }

    struct UintKeyValue { string key; uint256 value; }
    struct UintArrayKeyValue { string key; uint256[] value; }
    struct UintItems { UintKeyValue[] items; UintArrayKeyValue[] arrayItems; }

    struct IntKeyValue { string key; int256 value; }
    struct IntArrayKeyValue { string key; int256[] value; }
    struct IntItems { IntKeyValue[] items; IntArrayKeyValue[] arrayItems; }

    struct BoolKeyValue { string key; bool value; }
    struct BoolArrayKeyValue { string key; bool[] value; }
    struct BoolItems { BoolKeyValue[] items; BoolArrayKeyValue[] arrayItems; }

    struct Bytes32KeyValue { string key; bytes32 value; }
    struct Bytes32ArrayKeyValue { string key; bytes32[] value; }
    struct Bytes32Items { Bytes32KeyValue[] items; Bytes32ArrayKeyValue[] arrayItems; }

    struct BytesKeyValue { string key; bytes value; }
    struct BytesArrayKeyValue { string key; bytes[] value; }
    struct BytesItems { BytesKeyValue[] items; BytesArrayKeyValue[] arrayItems; }

    struct StringKeyValue { string key; string value; }
    struct StringArrayKeyValue { string key; string[] value; }
    struct StringItems { StringKeyValue[] items; StringArrayKeyValue[] arrayItems; }

    struct EventLogData {
        AddressItems addressItems;
        UintItems uintItems;
        IntItems intItems;
        BoolItems boolItems;
        Bytes32Items bytes32Items;
        BytesItems bytesItems;
        StringItems stringItems;
    }

    // Room in each list of a fresh payload; put* checks it.
    uint256 private constant ADDRESSES = 8;
    uint256 private constant UINTS = 32;
    uint256 private constant INTS = 8;
    uint256 private constant BOOLS = 4;
    uint256 private constant WORDS = 4;

    /// An empty payload with room to append. The lists are carved out of memory by hand because `new T[](n)` would also
    /// allocate every element.
    function create() internal pure returns (EventLogData memory data) {
        AddressKeyValue[] memory addresses;
        UintKeyValue[] memory uints;
        IntKeyValue[] memory ints;
        BoolKeyValue[] memory bools;
        Bytes32KeyValue[] memory words;
        uint256 p = _reserve(ADDRESSES);
        assembly ("memory-safe") { addresses := p }
        p = _reserve(UINTS);
        assembly ("memory-safe") { uints := p }
        p = _reserve(INTS);
        assembly ("memory-safe") { ints := p }
        p = _reserve(BOOLS);
        assembly ("memory-safe") { bools := p }
        p = _reserve(WORDS);
        assembly ("memory-safe") { words := p }
        data.addressItems.items = addresses;
        data.uintItems.items = uints;
        data.intItems.items = ints;
        data.boolItems.items = bools;
        data.bytes32Items.items = words;
    }

    function put(EventLogData memory data, string memory key, address value) internal pure {
        AddressKeyValue[] memory list = data.addressItems.items;
        uint256 n = list.length;
        assert(n < ADDRESSES);
        assembly ("memory-safe") { mstore(list, add(n, 1)) }
        list[n] = AddressKeyValue(key, value);
    }

    function putUint(EventLogData memory data, string memory key, uint256 value) internal pure {
        UintKeyValue[] memory list = data.uintItems.items;
        uint256 n = list.length;
        assert(n < UINTS);
        assembly ("memory-safe") { mstore(list, add(n, 1)) }
        list[n] = UintKeyValue(key, value);
    }

    function putInt(EventLogData memory data, string memory key, int256 value) internal pure {
        IntKeyValue[] memory list = data.intItems.items;
        uint256 n = list.length;
        assert(n < INTS);
        assembly ("memory-safe") { mstore(list, add(n, 1)) }
        list[n] = IntKeyValue(key, value);
    }

    function putBool(EventLogData memory data, string memory key, bool value) internal pure {
        BoolKeyValue[] memory list = data.boolItems.items;
        uint256 n = list.length;
        assert(n < BOOLS);
        assembly ("memory-safe") { mstore(list, add(n, 1)) }
        list[n] = BoolKeyValue(key, value);
    }

    function putBytes32(EventLogData memory data, string memory key, bytes32 value) internal pure {
        Bytes32KeyValue[] memory list = data.bytes32Items.items;
        uint256 n = list.length;
        assert(n < WORDS);
        assembly ("memory-safe") { mstore(list, add(n, 1)) }
        list[n] = Bytes32KeyValue(key, value);
    }

    /// Sets the only bytes item.
    function setBytes(EventLogData memory data, string memory key, bytes memory value) internal pure {
        data.bytesItems.items = new BytesKeyValue[](1);
        data.bytesItems.items[0] = BytesKeyValue(key, value);
    }

    /// Sets the only string item.
    function setString(EventLogData memory data, string memory key, string memory value) internal pure {
        data.stringItems.items = new StringKeyValue[](1);
        data.stringItems.items[0] = StringKeyValue(key, value);
    }

    /// Sets the only list of words.
    function setBytes32Array(EventLogData memory data, string memory key, bytes32[] memory value) internal pure {
        data.bytes32Items.arrayItems = new Bytes32ArrayKeyValue[](1);
        data.bytes32Items.arrayItems[0] = Bytes32ArrayKeyValue(key, value);
    }

    /// Sets the only list of addresses.
    function setPath(EventLogData memory data, string memory key, address[] memory path) internal pure {
        data.addressItems.arrayItems = new AddressArrayKeyValue[](1);
        data.addressItems.arrayItems[0] = AddressArrayKeyValue(key, path);
    }

    /// Sets the two lists of addresses of a deposit or a withdrawal.
    function setPaths(EventLogData memory data, address[] memory longPath, address[] memory shortPath) internal pure {
        data.addressItems.arrayItems = new AddressArrayKeyValue[](2);
        data.addressItems.arrayItems[0] = AddressArrayKeyValue("longTokenSwapPath", longPath);
        data.addressItems.arrayItems[1] = AddressArrayKeyValue("shortTokenSwapPath", shortPath);
    }

    /// An address as an event topic.
    function topic(address value) internal pure returns (bytes32) {
        return bytes32(uint256(uint160(value)));
    }

    /// Memory for a list that is still empty and can hold `capacity` elements.
    function _reserve(uint256 capacity) private pure returns (uint256 p) {
        assembly ("memory-safe") {
            p := mload(0x40)
            mstore(p, 0)
            mstore(0x40, add(p, mul(add(capacity, 1), 0x20)))
        }
    }
}
